# Sourced: `spent FILE` sets SPENT to the CPU seconds of everything that this shell has started so far, with FILE for its notes. A shell
# of its own, as in a pipe, would tell of what that one started.
spent() {
    times >"$1"
    SPENT=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += 60 * t[1] + t[2] } printf "%.1f", sum }' "$1")
}
