"""Skills: directories with a SKILL.md where agents keep them (https://agentskills.io)."""
