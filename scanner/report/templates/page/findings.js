// Findings stand in the page itself; this only hides those that are not asked for.

const findingForm = byId("finding-filter");
const findings = [...document.querySelectorAll(".finding")];

function filterFindings() {
  const wanted = findingForm.elements.text.value.trim().toLowerCase();
  let shown = 0;
  for (const finding of findings) {
    const asked = findingForm.elements[finding.dataset.severity].checked;
    finding.hidden = !asked || !finding.textContent.toLowerCase().includes(wanted);
    shown += finding.hidden ? 0 : 1;
  }
  byId("finding-count").textContent = `${shown} of ${many(findings.length, "finding")}`;
}

findingForm.addEventListener("input", filterFindings);
findingForm.addEventListener("submit", event => event.preventDefault());
if (findings.length > 4) {
  findingForm.hidden = false;
  filterFindings();
}
