"""An agent without a model that writes a draft and fixes it twice, as the critique asks."""

from pytest_loop import ScriptedAgent

DRAFT = """\
# Backups

## Install

Put `backup.toml` into the folder that you want to keep:

```toml
keep = 7
target = /mnt/backup
```

## Usage

Run `backup now`. See [how to get files back](#restoring) when you need them.
"""
WITH_RESTORE = (
    DRAFT.replace("target = /mnt/backup", 'target = "/mnt/backup"')
    + """
## Restore

Run `backup restore FILE`. It never overwrites: the file comes back beside the one that is there.
"""
)
WITH_LINK = WITH_RESTORE.replace("#restoring", "#restore")

agent = ScriptedAgent({"PRODUCE": DRAFT, "REFINE": [WITH_RESTORE, WITH_LINK]})
