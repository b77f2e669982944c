"""The document in an agent's answer."""

from __future__ import annotations

import pytest

from pytest_loop.run.document_text import unwrap_document

YAML = "a: 1\nb: 2\n"


@pytest.mark.parametrize(
    ("name", "answer", "document"),
    [
        ("x.yaml", YAML, YAML),
        ("x.yaml", f"```yaml\n{YAML}```", YAML),
        ("x.yml", f"Here it is:\n\n```yaml\n{YAML}```\nI hope it helps.\n", YAML),
        ("x.yaml", f"Here it is:\n\n```\n{YAML}```\n", YAML),
        ("x.yaml", f"First:\n```json\n{{}}\n```\nThen\n```yaml\n{YAML}```\n", YAML),
        ("x.yaml", f"A short one\n```yaml\na: 1\n```\nand all of it\n```yaml\n{YAML}```\n", YAML),
        ("x.yaml", f"Broken\n```yaml\na: [\n```\nand mended\n```yaml\n{YAML}```\n", YAML),
        ("x.yaml", "a: |\n  text\n  ```\n  code\n  ```\n", "a: |\n  text\n  ```\n  code\n  ```\n"),
        ("x.yaml", "```yaml\na: [\n```\n", "a: [\n"),
        ("x.yaml", "Sorry, I cannot do that.", "Sorry, I cannot do that."),
        ("x.json", 'Sure!\n```json\n{"a": 1}\n```', '{"a": 1}\n'),
        ("main.py", "```python\nx = 1\n```", "x = 1\n"),
        ("main.py", "The code:\n```py\nx = 1\ny = 2\n```\nRun it:\n```python\nprint(x)\n```\n", "x = 1\ny = 2\n"),
        ("main.py", '"""Say it.\n\n```python\nx\n```\n"""\nx = 1\n', '"""Say it.\n\n```python\nx\n```\n"""\nx = 1\n'),
        ("main.py", "```python\ndef broken(:\n```", "def broken(:\n"),
        ("main.go", "Here:\n```go\npackage main\n```\n", "package main\n"),
        ("main.go", "package main\n", "package main\n"),
        ("nginx.conf", "```nginx\nserver { }\n```\nTest it with `nginx -t`.", "server { }\n"),
        ("guide.md", "# Guide\n\n```yaml\na: 1\n```\n", "# Guide\n\n```yaml\na: 1\n```\n"),
        ("guide.md", "Here is the guide:\n\n```markdown\n# Guide\n\n```sh\nls\n```\n```\n\nTell me.", "# Guide\n\n```sh\nls\n```\n"),
        ("guide.md", "# Guide\n\n```markdown\n# An example\n```\n", "# Guide\n\n```markdown\n# An example\n```\n"),
    ],
)  # fmt: skip
def test_fence_and_remarks_around_a_document_are_removed(name: str, answer: str, document: str) -> None:
    assert unwrap_document(answer, name) == document
