# Source this. `spent FILE` sets SPENT to the CPU seconds of all processes that this shell has started so far; FILE is
# scratch space. Do not call it in a subshell, such as a pipe: that would count the subshell's own processes.
spent() {
    times >"$1"
    SPENT=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] } printf "%.1f", sum }' "$1")
}
