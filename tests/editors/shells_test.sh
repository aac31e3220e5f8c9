#!/bin/bash
# Completions of the shells, asked from real ones: shells_test.sh SCRATCH
set -u

scratch=$1/shells
mkdir -p "$scratch/man1" && cd "$scratch" || exit 1
touch net.pipe plan.pir other.txt
failed=0
# expect WHAT FOUND EXPECTED
expect() {
    if [ "$2" = "$3" ]; then
        echo "ok      $1"
    else
        failed=1
        printf 'FAILED  %s: %q instead of %q\n' "$1" "$2" "$3"
    fi
}
sorted() { cut -f 1 | sort | tr '\n' ' ' | sed 's/ $//'; }

# bash: the output after a TAB, TAB in a terminal.
piper completion bash >piper.bash
bash_gives() {
    bash -c 'source piper.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _piper; printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sorted
}
expect "bash: commands" "$(bash_gives piper co)" "compare completion"
expect "bash: kinds" "$(bash_gives piper show gr)" "graph grid"
expect "bash: values" "$(bash_gives piper show dag --level pl)" "placed planned"
expect "bash: files" "$(bash_gives piper check ne)" "net.pipe"
expect "bash: a name with a blank" "$(touch 'a b.pipe'; bash -c 'source piper.bash; set -- piper fmt a; COMP_WORDS=("$@"); COMP_CWORD=2; _piper; printf "%s|" "${COMPREPLY[@]}"')" "a b.pipe|"
rm -f 'a b.pipe'

piper completion fish >piper.fish
fish_gives() { fish --no-config -c "source piper.fish; complete -C '$1'" | sorted; }
expect "fish: commands" "$(fish_gives 'piper co')" "compare completion"
expect "fish: kinds" "$(fish_gives 'piper show gr')" "graph grid"
expect "fish: values" "$(fish_gives 'piper show dag --level pl')" "placed planned"
expect "fish: schedules" "$(fish_gives 'piper simulate zb')" "zb_h1 zbv"

# zsh: in a separate terminal, because completion lives in the line editor.
piper completion zsh >_piper
cat >zsh.zsh <<'Z'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z "PS1= ; PS2= ; fpath=($PWD \$fpath); autoload -U compinit; compinit -u -D; show() { print -r -- \"<<\$BUFFER>>\" }; zle -N show; bindkey '^X' show; echo rea''dy"
zpty -r -m z line '*ready*'
for typed in "$@"; do
    zpty -w -n z "$typed"$'\t\C-X'
    zpty -r -m z line '*<<*>>*'
    print -r -- "${${line##*<<}%%>>*}"
    zpty -w -n z $'\C-U'
done
Z
expect "zsh: a command, a kind, a value" "$(timeout 60 zsh -f zsh.zsh 'piper expl' 'piper show tim' 'piper show dag --level commu' | tr '\n' '|')" \
    "piper explain |piper show timeline |piper show dag --level communicating |"

piper completion man >man1/piper.1
expect "man: nothing to warn of" "$(MANWIDTH=100 man --warnings -l man1/piper.1 2>&1 >shown.txt)" ""
expect "man: a command with an option" "$(grep -c -e '^   piper show KIND IN \[NAME\]' -e '^       --level LEVEL' shown.txt)" "2"
exit $failed
