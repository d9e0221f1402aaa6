"""OPS9xx: what kept opscan from judging. They never block by themselves; they make the scan
incomplete (exit 3) or failed (exit 2)."""

from __future__ import annotations

from scanner.judge.rules.interface import Advice, Problem, define

__all__ = ["RULES"]


@define("OPS901", "model-not-captured", "note", since="0.1.0")
def model_not_captured(problem: Problem) -> Advice | None:
    """A model was found, but no method could see its step.

    opscan builds the model without memory for its weights and runs one step of it while it
    records every op. When that fails it tries fake tensors, real values on the CPU, and export.
    The finding names what each of them said.

    Nothing about this model has been judged. The scan exits with 3.

    ## What to do

    - A constructor that needs arguments, or inputs that cannot be guessed: define a hook.

          def opscan_model():
              model = Net(width=64)
              return model, (torch.randn(8, 3, 32, 32),)

      It may return a loss and an optimizer too: `return model, inputs, loss, optimizer`.
    - Inputs only: `--inputs "x=8x3x32x32:float32"`.
    - A file that trains on import: move the training under `if __name__ == "__main__":`.
    - A slow file: `--timeout 600`.
    """
    if problem.capture is not None or problem.unreadable or problem.internal or problem.unread:
        return None
    return Advice(
        message=f"{problem.name} could not be captured: {problem.message}", remedy=problem.remedy
    )


@define("OPS902", "capture-incomplete", "note", since="0.1.0")
def capture_incomplete(problem: Problem) -> Advice | None:
    """Part of the step could not be seen, so part of it is not judged.

    For example a backward pass that fails, a branch that depends on values, or an op that hides
    what it runs inside. The report lists every part and the reason. The scan exits with 3, unless
    `--allow-incomplete` is given.

    ## What to do

    Follow the reason given. Often a hook helps that returns the loss and the optimizer as your
    training script builds them (see OPS901), or inputs of a realistic size.
    """
    if problem.capture is None or problem.capture.complete:
        return None
    unseen = "; ".join(f"{part.what}: {part.reason}" for part in problem.capture.unseen)
    return Advice(
        message=f"{problem.name} was captured in part: {unseen or 'the reason is not known'}",
        remedy="Define opscan_model() so that it returns model, inputs, loss and optimizer.",
    )


@define("OPS903", "source-not-loaded", "note", since="0.1.0")
def source_not_loaded(problem: Problem) -> Advice | None:
    """What you named could not be loaded: opscan could not do its job.

    The file is missing, is not valid Python, imports a package that is not installed where
    opscan runs, or holds no model; or an option for it could not be understood. The scan exits
    with 2. Other models named in the same command are still reported.

    ## What to do

    Follow the message. opscan imports your file as Python would, with the interpreter that opscan
    itself runs in: install opscan into the environment that your project runs in.
    """
    if not problem.unreadable or problem.internal:
        return None
    return Advice(
        message=f"{problem.name} could not be loaded: {problem.message}", remedy=problem.remedy
    )


@define("OPS904", "internal-error", "note", since="0.1.0")
def internal_error(problem: Problem) -> Advice | None:
    """opscan itself failed on this model.

    This is a bug of opscan, not of your model. The scan exits with 2; other models named in the
    same command are still reported.

    ## What to do

    Please report it with the traceback that opscan prints and the command that you ran.
    """
    if not problem.internal:
        return None
    return Advice(
        message=f"{problem.name} could not be judged: {problem.message}",
        remedy="This is a bug of opscan; please report it with the traceback.",
    )


@define("OPS906", "file-not-read", "note", since="0.1.0")
def file_not_read(problem: Problem) -> Advice | None:
    """A Python file in a directory could not be read, so no source rule has looked at it.

    Its syntax is not that of the Python that runs opscan, its bytes are not in the encoding that
    it declares, or the system does not let it be read. Such files are common in directories of
    other people's code: templates, files for Python 2, examples of errors. The scan goes on
    without it and exits with 3, since nothing is known about it. A file that you name yourself
    is OPS903 instead, and the scan exits with 2.

    Files that mention no framework are not parsed, so their syntax is never complained about.

    ## What to do

    - Mend the file, or run opscan with the Python that it is written for.
    - Leave it out: name the directories that you mean.
    - `--allow-incomplete` accepts it as unjudged.
    """
    if not problem.unread:
        return None
    return Advice(
        message=f"{problem.name} could not be read: {problem.message}", remedy=problem.remedy
    )


RULES = (model_not_captured, capture_incomplete, source_not_loaded, internal_error, file_not_read)
