"""Skills: directories with a SKILL.md, found where agents keep them (https://agentskills.io)."""
