"""Random Python files that mention CUDA, doubles and the environment in every way we know of."""

from __future__ import annotations

import codecs
from random import Random
from typing import NamedTuple

__all__ = ["Program", "program"]

_HEADS = (
    "import torch",
    "import torch as t",
    "import torch, os",
    "import torch; import os",
    "import torch.nn as nn\nimport torch",
    "import torch.nn as nn",
    "from torch import nn, device",
    "from torch.cuda.amp import autocast, GradScaler",
    "from torch.cuda.amp import (\n    autocast as ac,  # mixed\n    GradScaler,\n)",
    "from torch.cuda import amp",
    "import torch.cuda.amp as amp",
    "try:\n    import torch\nexcept ImportError:\n    torch = None",
    "if True:\n    import torch",
    "import os",
    "import os as system",
    "from os import environ",
    "import numpy as np",
    "from somewhere import *",
    "import transformers  # a library",
    "def torch(): ...",
    "device = 'cuda'",
    "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')",
    "device: str = None",
    "import torch\nimport os\nos.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'  # why",
    "import torch, timm\n# then\nimport os\n\nos.putenv('PYTORCH_MPS_LOW_WATERMARK_RATIO', '1')",
    "from torch import nn; import os; os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'",
)
_LINES = (
    "model.cuda()",
    "model = model.cuda()  # to the GPU",
    "model.cuda ()",
    "model.cuda( non_blocking=True )",
    "model.cuda(0)",
    "model.cuda(device=0)",
    "(model\n    .cuda())",
    "model \\\n    .cuda()",
    "model.cuda(\n    non_blocking=True,  # why\n)",
    "x = a.cuda() + b.cuda(); y = x.cuda().cuda()",
    "x.to('cuda')",
    'x.to("cuda:0", non_blocking=True)',
    'x.to("cuda:1")',
    "x.to(dev)",
    "dev = 'cuda'",
    "dev: str = 'cuda'",
    "dev, n = 'cuda', 3",
    "device = torch.device('cuda')",
    "device = t.device(\n    'cuda'  # the GPU\n)",
    "d = torch.device(f'cuda:{rank}')",
    'print(f"{model.cuda()} {x.to(device)!r:>{width}}")',
    'print(f"""\n{model.cuda()}\n""")',
    "x = torch.zeros(3, dtype=torch.float64)",
    "x = torch.zeros(3, dtype = t.double, device='cuda')",
    "y = [v.to(torch.complex128) for v in values if v.dtype == torch.float64]",
    "with torch.cuda.amp.autocast(): loss()",
    "with torch.cuda.amp.autocast(True, torch.bfloat16, cache_enabled=False): loss()",
    "with autocast(enabled=flag), ac(): loss()",
    "with amp.autocast(*flags): loss()",
    "scaler = torch.cuda.amp.GradScaler()",
    "scaler = GradScaler(1024., enabled=use)",
    "scaler = make(GradScaler)",
    "autocast = None",
    "os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'",
    "os.environ['PYTORCH_ENABLE_MPS_FALLBACK'] = '1'; x = 3",
    "os.environ.setdefault('PYTORCH_MPS_HIGH_WATERMARK_RATIO', '0.0')  # all of it",
    "environ['PYTORCH_ENABLE_MPS_FALLBACK'] = str(1)",
    "os.environ[\n    'PYTORCH_ENABLE_MPS_FALLBACK'\n] = '1'",
    "dev = 'cuda:0' if torch.cuda.is_available() else 'cpu'",
    "device = torch.device('cuda') if t.cuda.is_available() else torch.device('cpu')",
    "torch.load(name, map_location='cuda')",
    "with torch.autocast('cuda', torch.float16): scaler = torch.amp.GradScaler()",
    "x = torch.from_numpy(np.zeros(3)).to('cuda', non_blocking=True)",
    "x = torch.tensor(np.random.rand(3))",
    "trainer = Trainer(gpus=1, accelerator='gpu')",
    "global device",
    "del device",
    "lambda device: device.cuda()",
    "text = 'model.cuda()'  # model.cuda()",
    "text = '''\nmodel.cuda()\n'''",
    "loader = torch.utils.data.DataLoader(data, pin_memory=True)",
    "x.double().cuda()",
    "x = torch.kthvalue(x, 3).values",
    "y = torch.vdot(a, b) + torch.take(x, index)",
    "torch.cuda.synchronize()",
    "if torch.cuda.is_available: x.cuda()",
    "assert str(x.device) == 'cuda'",
    "é = 'ünï' ; é.cuda()  # ö",
    "import torch",
)
_BLOCKS = (
    "def f{n}(device='cuda', *args):",
    "async def f{n}(x, device: torch.device = torch.device('cuda')):",
    "class C{n}(torch.nn.Module):",
    "if torch.cuda.is_available():",
    "if device.type == 'cuda':",
    "for x in loader:",
    "while not done:",
    "with open(name) as file:",
    "try:",
    "@torch.cuda.amp.autocast()\ndef f{n}():",
)
_ENDS = ("\n", "\r\n", "\r")


class Program(NamedTuple):
    """One file, and lines that nothing has to do with."""

    content: bytes
    kept: tuple[str, ...]


def program(seed: int) -> Program:
    """The file of a seed."""
    random = Random(seed)
    lines = _beginning(random)
    kept: list[str] = []
    _block(random, lines, kept, "", 3)
    text = "\n".join(lines) + ("\n" if random.random() < 0.8 else "")
    text = text.replace("\n", random.choices(_ENDS, (8, 4, 1))[0])
    if "coding: latin-1" in text:
        return Program(text.encode("latin-1"), tuple(kept))
    mark = codecs.BOM_UTF8 if random.random() < 0.1 else b""
    return Program(mark + text.encode(), tuple(kept))


def _beginning(random: Random) -> list[str]:
    lines: list[str] = []
    if random.random() < 0.3:
        lines.append("#!/usr/bin/env python3")
    if random.random() < 0.1:
        lines.append("# coding: latin-1")
    if random.random() < 0.3:
        lines += ['"""What it is,', 'in two lines: torch."""']
    if random.random() < 0.3:
        lines.append("from __future__ import annotations")
    lines += random.sample(_HEADS, random.randint(0, 4))
    return lines


def _block(random: Random, lines: list[str], kept: list[str], indent: str, depth: int) -> None:
    for _ in range(random.randint(1, 5)):
        number = len(lines)
        if random.random() < 0.2:
            kept.append(f"{indent}kept_{number} = [ {number},{number} ]  # as it is, {number}")
            lines.append(kept[-1])
        elif depth and random.random() < 0.3:
            head = random.choice(_BLOCKS).format(n=number)
            lines += [indent + line for line in head.split("\n")]
            inner = indent + random.choice(["    ", "  ", "\t"])
            lines.append(f"{inner}pass")
            _block(random, lines, kept, inner, depth - 1)
            if head == "try:":
                lines += [f"{indent}finally:", f"{inner}pass"]
        else:
            first, *rest = random.choice(_LINES).split("\n")
            lines += [indent + first, *rest]
        if random.random() < 0.2:
            lines.append(random.choice(["", f"{indent}# a comment", "\f"]))
