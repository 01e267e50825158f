# Common part of the experiments; to be sourced. It needs `usage`, a function that explains the script's arguments.
set -euo pipefail

user_dir=$(fairseq-stack user-dir)
export OMP_NUM_THREADS=${THREADS:-$(nproc)}

say() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*"; }

# The arguments are DATA OUT [KIND ...], where a KIND is tf, sup or nd.
if [ $# -lt 2 ]; then
    usage >&2
    exit 2
fi
data=$1 out=$2
shift 2
kinds=("$@")
[ $# -gt 0 ] || kinds=(tf sup nd)
for kind in "${kinds[@]}"; do
    case $kind in
        tf | sup | nd) ;;
        *) echo "$0: expected tf, sup or nd, got '$kind'" >&2 && exit 2 ;;
    esac
done
mkdir -p "$out"

# Runs a command with its output in a log, and shows the end of the log if it fails.
logged() { # LOG COMMAND ...
    local log=$1
    shift
    "$@" >> "$log" 2>&1 || {
        echo "$0: failed: $1; the end of $log:" >&2
        tail -n 20 "$log" >&2
        return 1
    }
}

# Notes in a folder the settings it is made with, and fails if those noted before are others. A folder without a note,
# of an earlier version of these scripts, is taken to be made with these.
keep_settings() { # FOLDER SETTING ...
    local file=$1/settings old new
    shift
    new=$(printf '%q ' "$@")
    new=${new% }
    if [ ! -f "$file" ]; then
        printf '%s\n' "$new" > "$file.part"
        mv "$file.part" "$file"
    fi
    old=$(cat "$file")
    [ "$old" = "$new" ] || {
        printf '%s: %s has other settings; choose another OUT, or delete that folder\n  there: %s\n  now:   %s\n' \
            "$0" "$file" "$old" "$new" >&2
        return 1
    }
}

# Trains a model; training that was interrupted goes on. Arguments are those of fairseq-train.
train() { # KIND ARGUMENT ...
    local save=$out/$1 settings
    shift
    settings=("$@" --seed "${SEED:-1}")
    mkdir -p "$save"
    keep_settings "$save" "${settings[@]}"
    [ -f "$save/trained" ] && return
    say "training $(basename "$save") (log: $save/train.log)"
    logged "$save/train.log" fairseq-train "$out/corpus/data-bin" "${settings[@]}" --user-dir "$user_dir" \
        --save-dir "$save" --num-workers 0 --no-epoch-checkpoints --no-progress-bar --log-format simple \
        --log-interval 100
    touch "$save/trained"
}
