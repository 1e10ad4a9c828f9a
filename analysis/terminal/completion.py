"""Completion for bash and zsh: a static script made of the commands and their options.

The shell asks the script, never the program: no waiting at the Tab key. After -r come the runs of
the folder, after --executor its words, after -c YAML files, elsewhere any file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Shell = Literal["bash", "zsh"]

_HEAD = {"bash": "", "zsh": "autoload -Uz bashcompinit && bashcompinit\n"}
_SCRIPT = """\
# completion of punzi for {shell}; made by: punzi completion {shell}
{head}_punzi() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="" words="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${{COMP_WORDS[i]}}" in
      {names}) command="${{COMP_WORDS[i]}}"; break ;;
    esac
  done
  COMPREPLY=()
  case "$before" in
{values}
    -r|--run) words="$(cd runs 2>/dev/null && ls -d */ 2>/dev/null | tr -d /)" ;;
    -c|--config) words="$(ls -d *.yaml *.yml 2>/dev/null)" ;;
    *)
      case "$command" in
        "") words="{commands} {options}" ;;
{cases}
      esac
      if [[ -n "$command" && "$current" != -* ]]; then words=""; fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _punzi punzi
"""


def completion_script(shell: Shell, command: Any, choices: Mapping[str, Iterable[str]]) -> str:
    """Of a click group: every command with its options; choices: option -> words it may have."""
    commands: Mapping[str, Any] = command.commands
    cases = [f'        {name}) words="{_options(each)}" ;;' for name, each in commands.items()]
    return _SCRIPT.format(
        shell=shell,
        head=_HEAD[shell],
        names="|".join(commands),
        commands=" ".join(commands),
        options=_options(command),
        values="\n".join(f'    {o}) words="{" ".join(words)}" ;;' for o, words in choices.items()),
        cases="\n".join(cases),
    )


def _options(command: Any) -> str:
    names = [name for p in command.params for name in p.opts if name.startswith("-")]
    return " ".join([*names, "--help"])
