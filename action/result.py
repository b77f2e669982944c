"""Turn the files of a run in the folder OUT into the outputs of the action and the body of a comment."""

import json
import os
from pathlib import Path
from xml.etree import ElementTree

MARKER = "<!-- pytest-loop -->"
MAX_NAMES = 10


def main() -> None:
    """Write the outputs into GITHUB_OUTPUT, and the comment into comment.md."""
    folder = Path(os.environ["OUT"])
    code = int((folder / "exit-code").read_text())
    is_run = (folder / "result.json").exists()
    result = json.loads((folder / "result.json").read_text()) if is_run else read_session(folder / "junit.xml")
    score = result.get("score")
    status = result.get("status") or ("failed" if code else "passed")
    diff = folder / "change.diff"
    outputs = {
        "status": status,
        "score": "" if score is None else f"{score:g}",
        "report": str(folder / "report.html") if (folder / "report.html").exists() else "",
        "diff": str(diff) if diff.exists() and diff.stat().st_size else "",
    }
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}={value}\n" for name, value in outputs.items())
    comment = render_comment(result, outputs, folder)
    (folder / "comment.md").write_text("\n".join([MARKER, *comment, "REPORT", ""]), encoding="utf-8")
    if not is_run:  # a run writes a summary itself
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
            file.write("\n".join(comment))


def read_session(path: Path) -> dict:
    """Return the lowest score in a JUnit file, None without rules, and the names of what failed."""
    if not path.exists():
        return {}
    root = ElementTree.parse(path).getroot()  # noqa: S314 - pytest wrote it in this job
    scores = [row.get("value") for row in root.iter("property") if row.get("name").startswith("loop.score")]
    cases = [case for case in root.iter("testcase") if {"failure", "error"} & {part.tag for part in case}]
    names = [f"{case.get('classname')}::{case.get('name')}".lstrip(":") for case in cases]
    return {"score": min(map(float, scores), default=None), "failed": names}


def render_comment(result: dict, outputs: dict, folder: Path) -> "list[str]":
    """Return the lines of the comment: verdict and score, what blocks, and what was changed."""
    stop = result.get("stop") or {}
    rules = result.get("rules") or {}
    head = f"**pytest-loop: {outputs['status']}**"
    head += f", score {outputs['score']}" if outputs["score"] else ""
    head += f", {rules['passed']} of {rules['total']} rules pass" if rules else ""
    lines = [head, ""]
    if stop.get("reason"):
        lines += [f"Ended after iteration {result['iteration']} of {result['max_iterations']}: `{stop['reason']}`.", ""]
    lines += list_names("Fixed", list_fixed(result))
    lines += list_names("Blocks", result.get("failed") or [])
    lines += list_names("Passed before, and fails now", result.get("regressions") or [])
    diffstat = (folder / "diffstat.txt").read_text(encoding="utf-8").rstrip() if outputs["diff"] else ""
    if diffstat:
        lines += ["What was changed:", "```", diffstat.replace("```", "'''"), "```", ""]
    return lines


def list_fixed(result: dict) -> "list[str]":
    """Return the rules that failed in the first evaluation, and do not fail now."""
    path = Path(result.get("history") or "missing")
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.is_file() else []
    first = next((row["payload"]["failed"] for row in rows if row.get("event") == "evaluation_done"), [])
    return sorted({row["id"] for row in first}.difference(result.get("failed") or []))


def list_names(title: str, names: "list[str]") -> "list[str]":
    """Return a list of rules in Markdown."""
    shown = [f"- `{name.replace('`', chr(39))}`" for name in names[:MAX_NAMES]]
    more = [f"- and {len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return [f"{title}:", *shown, *more, ""] if names else []


if __name__ == "__main__":
    main()
