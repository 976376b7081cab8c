/**
 * The shell scripts that run beside an agent. They are passed in variables of the environment: an upgrade cannot change
 * them under a running shell, and `ps` does not show them. They must work in dash, bash (also version 3.2 as `sh`) and
 * busybox. Programs are given as absolute paths.
 *
 * - The **wrapper** starts the others and waits for the command in the foreground (in the background a shell would make
 *   it ignore SIGINT). It writes the exit status.
 * - The **keeper** holds the FIFOs open, starts pumps and feeder, and follows commands on the control FIFO, so that
 *   each of them can be replaced.
 * - A **pump** appends the agent's output to a spool. It is a `cat`. On a disk so small that a fast writer could fill
 *   it between two checks of the guard, it is a careful pump: it reads into a file whose blocks are already allocated,
 *   appends from there, and repeats the rest while the disk is full. So a full disk costs time but no byte.
 * - The **feeder** copies the stdin journal to the agent.
 * - **INNER** is the last shell before the agent. The environment is the service's until then, because a variable of
 *   the agent (such as LD_PRELOAD) must not reach a program that has the service's rights. INNER sets the agent's
 *   variables right before it becomes the agent.
 * - The **guard** runs once per node and pauses the pumps while the disk is nearly full.
 *
 * File descriptors:
 *
 * | fd | in wrapper and keeper | in the processes between the wrapper and the agent |
 * |---|---|---|
 * | 0 | the agent's stdin | the agent's stdin |
 * | 1 | the gate (the keeper's write end) | the agent's stdout |
 * | 2 | the shell's message about a killed command | the agent's stderr |
 * | 3, 4, 5 | the FIFOs out, err and in, held open | the environment, the system call filter, bubblewrap's report |
 * | 6 | wrapper: the gate's read end; keeper: the stdin journal | the gate's read end |
 * | 7 | the control FIFO | the control FIFO |
 * | 8 | wrapper: the file `spawn`; keeper: the feeder's wake FIFO | the file `spawn` |
 * | 9 | `alive`, held only by the wrapper | |
 *
 * The agent itself gets only 0, 1 and 2.
 */

/** Stored in `launch.json`. Raise it when a change of a script or of the files of a session would mislead earlier versions, which then wait for an upgrade. */
export const SESSION_VERSION = 3;

/**
 * The first arguments of a shell that runs a script, and the environment it needs. In `ps`, the title says what the shell
 * is for: it has no other name there.
 */
export function shellScript(
  title: string,
  script: string,
): { options: string[]; env: Record<string, string> } {
  // An id can come from another machine, and must not be able to end the comment.
  const comment = `# svc: ${title.replace(/[^\w .-]/g, '_')}`;
  return {
    options: ['-c', `${comment}\neval "$svc_script"`],
    env: { svc_script: `unset svc_script\n${script}` },
  };
}

export const START_TIME = `
# The second field is the name of the process, which may contain line breaks and parentheses.
fields() {
  t=
  while read -r line; do t=$t$line; done 2>/dev/null <"/proc/$1/stat"
  t=\${t##*) }
  [ -n "$t" ]
}
st() {
  if fields "$1"; then set -- $t; shift 19; t=$1
  elif [ -n "$ps" ]; then t=$(LC_ALL=C "$ps" -o lstart= -p "$1")
  fi
}`;

/**
 * The keeper's functions, for the wrapper and for a keeper that replaces a killed one. Their variables:
 *
 * | variable | meaning |
 * |---|---|
 * | `w` `k` `f` `m` | pids of wrapper, keeper, feeder and main process |
 * | `po` `pe` | pids of the pumps of stdout and stderr |
 * | `i` | pid of the init of the main process's pid namespace |
 * | `wt` `kt` `ft` `mt` `pot` `pet` `it` | their start times: with another start time, a pid belongs to another process |
 * | `t` | what `st` returns: a start time; empty if there is no such process. What `fields` returns: the fields after the name |
 * | `p` | what `pump` returns: the pid of the new pump; what `parent` returns: a parent's pid; elsewhere only compared |
 * | `n` | what `copied` returns: how many bytes `dd` copied |
 *
 * A pid is empty if there is no such process.
 */
const KEEPER = `${START_TIME}
pump() {
  if [ -e "$1.piece" ]; then
    (exec <"pipes/$1" >/dev/null 3>&- 4>&- 5>&- 6<&- 7>&- 8>&-; careful "$1") &
  else
    (exec "$cat" <"pipes/$1" >>"$1" 2>/dev/null 3>&- 4>&- 5>&- 6<&- 7>&- 8>&-) &
  fi
  p=$!
}
copied() { n=\${1%% byte*}; n=\${n##*[!0-9]}; n=\${n:-0}; }
careful() {
  while :; do
    copied "$(LC_ALL=C "$dd" bs=65536 count=1 conv=notrunc of="$1.piece" 2>&1)"
    [ "$n" -gt 0 ] || break
    size=$n at=0
    copied "$(LC_ALL=C "$dd" bs="$size" count=1 if="$1.piece" 2>&1 >>"$1")"
    at=$n
    while [ "$at" -lt "$size" ]; do
      "$sleep" 0.1 || "$sleep" 1
      copied "$(LC_ALL=C "$dd" bs=1 skip="$at" count=$((size - at)) if="$1.piece" 2>&1 >>"$1")"
      at=$((at + n))
    done
  done
}
feeder() {
  (
    exec 5>pipes/in 3>&- 4>&-
    while :; do
      "$cat" <&6 >&5 7>&- 8>&-
      if [ -e stdin.eof ]; then
        "$cat" <&6 >&5 7>&- 8>&-
        echo eof >&7
        exit
      fi
      read -r line <&8 || exit
    done
  ) &
  f=$!
}
# Readers ignore a handle without its last line, so only one that replaces another must appear at once.
note() {
  text="boot $boot
wrapper $w $wt
keeper $k $kt
pump_out $po $pot
pump_err $pe $pet\${f:+
feeder $f $ft}
main $m $mt\${i:+
init $i $it}\${nocgroup:+
nocgroup}\${again:+
again}
end"
  if [ -e handle ]; then echo "$text" >handle.new && "$mv" -f handle.new handle; else echo "$text" >handle; fi
}
gone() {
  st "$1"
  [ "$t" = "$2" ] || return 0
  fields "$1" || t=$(LC_ALL=C "$ps" -o stat= -p "$1")
  case $t in Z*) return 0 ;; esac
  return 1
}
# The command's shell has the control FIFO open before it becomes the command, so other processes can obtain the descriptor.
# They must not decide which process a stop signals, or cause needless helpers: the main process is accepted only once and
# must be the wrapper's command, its cgroup is looked up, and only dead helpers are replaced.
parent() {
  p=
  if fields "$1"; then p=\${t#* }; p=\${p%% *}
  elif [ -n "$ps" ]; then p=$(LC_ALL=C "$ps" -o ppid= -p "$1"); p=\${p##* }
  fi
}
child() { parent "$1"; [ "$p" = "$w" ] && [ "$1" != "$k" ]; }
# In a sandbox without a pid namespace, the wrapper's command is a bubblewrap process, which waits for the main process.
direct() {
  if [ -e filter ]; then parent "$1"; child "$p"; else child "$1"; fi
}
entered() {
  while read -r p; do [ "$p" != "$m" ] || return 0; done 2>/dev/null <"$cgroup/cgroup.procs"
  return 1
}
# In a pid namespace, the main process only knows its pid inside. Outside it is the only child of the namespace's init,
# whose pid bubblewrap has written to the file sandbox.
outside() {
  [ -s sandbox ] || return 1
  while read -r key value; do
    case $key in '"child-pid":') i=\${value%%,*} ;; esac
  done <sandbox
  st "$i"; it=$t
  # The line has no newline, so read reports a failure.
  read -r m rest <"/proc/$i/task/$i/children"
  [ -n "$m" ]
}
obey() {
  while read -r command argument <&7; do
    case $command in
      keeper) if [ -z "$k" ]; then k=$argument; st "$k"; kt=$t; fi ;;
      main) [ -z "$m" ] || continue; m=$argument; outside || direct "$m" || { m=; continue; }; [ -z "$cgroup" ] || entered || nocgroup=1; st "$m"; mt=$t; note || exit 1; echo go; exec 1>/dev/null ;;
      out) gone "$po" "$pot" || continue; pump out; po=$p; st "$po"; pot=$t; note ;;
      err) gone "$pe" "$pet" || continue; pump err; pe=$p; st "$pe"; pet=$t; note ;;
      feed) [ -n "$f" ] && gone "$f" "$ft" || continue; feeder; st "$f"; ft=$t; note ;;
      eof) exec 5>&- ;;
      end) break ;;
    esac
  done
  # What a killed pump has not read exists only in its FIFO, which disappears when the keeper closes it.
  if gone "$po" "$pot"; then true >out.again; pump out; po=$p; st "$po"; pot=$t; note; fi
  if gone "$pe" "$pet"; then true >err.again; pump err; pe=$p; st "$pe"; pet=$t; note; fi
  if [ -n "$f" ]; then
    st "$f"
    [ "$t" != "$ft" ] || kill -KILL "$f"
  fi
  exec 3>&- 4>&- 5>&- 6<&- 7>&- 8>&-
  wait
}`;

/**
 * Arguments: `svc mkfifo mv cat ps chown owner boot stdin cgroup dd sleep boxed command…`. An empty `chown`,
 * `cgroup` or `boxed` means none. `command` is what the main process executes:
 * `[setpriv …] [[unshare … -- [sh … setpriv … --]] bwrap … --] [setsid] sh -c 'eval "$svc_inner"' svc … argv…`. INNER is
 * in `svc_inner`.
 *
 * Starting a program costs about 1 ms of processor time, so the wrapper uses as few as possible: it claims the session
 * with a new file instead of `mkdir`, and writes the exit status in place.
 */
export const WRAPPER = `
case \${BASH_VERSION-} in ?*) set +o posix ;; esac
mkfifo=$1 mv=$2 cat=$3 ps=$4 chown=$5 owner=$6 boot=$7 stdin=$8 cgroup=$9
shift 9
dd=$1 sleep=$2 boxed=$3
shift 3
inner=$svc_inner
unset svc_inner
f= nocgroup= again= i= k= m= w=$$
${KEEPER}
"$mkfifo" -m 600 pipes/alive pipes/gate pipes/out pipes/err pipes/in pipes/ctl pipes/wake 2>/dev/null
exec 9<>pipes/alive || exit 1
set -C # so that only one wrapper can create the file
true 2>/dev/null >claimed || exit 0
set +C
[ -z "$chown" ] || "$chown" "$owner" pipes/out pipes/err pipes/in
exec 1<>pipes/gate 2<>wait.err 3<>pipes/out 4<>pipes/err 6<pipes/gate 7<>pipes/ctl 8>>spawn
if [ "$stdin" = 1 ]; then exec 5<>pipes/in 0<pipes/in; fi
trap : HUP INT QUIT TERM USR1 USR2
(
  trap '' HUP INT QUIT TERM USR1 USR2
  exec 0</dev/null 2>/dev/null 8>&- 9>&-
  st "$w"; wt=$t
  pump out; po=$p; st "$po"; pot=$t
  pump err; pe=$p; st "$pe"; pet=$t
  if [ "$stdin" = 1 ]; then
    exec 6<stdin 8<>pipes/wake
    feeder; st "$f"; ft=$t
  else
    exec 6<&-
  fi
  obey
) &
echo "keeper $!" >&7
exec 1>/dev/null 5>&-
(
  if [ -n "$cgroup" ]; then echo 0 2>/dev/null >"$cgroup/cgroup.procs"; fi
  exec >pipes/out 2>pipes/err 3<environment 4>&- 5>&- 9>&-
  [ ! -e filter ] || exec 4<filter
  [ -z "$boxed" ] || exec 5>sandbox
  export svc_inner="$inner"
  exec "$@"
)
code=$?
up=0
read -r up idle 2>/dev/null </proc/uptime
echo "$code $up end" 1<>exit
echo end >&7
exit 0
`;

/**
 * Arguments: `svc workdir cat stat places ids masks entries argv…`. Runs as the agent's user, inside the sandbox. It
 * checks:
 *
 * - that the mounts show what the node inspected: `places`, one path per line, have the device and inode numbers `ids`
 *   (empty: nothing was mounted),
 * - that they are where they should be: the folders `masks` contain nothing but `entries`,
 * - the workdir and the program.
 *
 * Then it sets the agent's environment and becomes the program. From `eval` on, it assigns no variable, because the agent
 * may have one of that name: an assignment would change its value. Functions use their parameters instead.
 */
export const INNER = `
unset svc_inner
dir=$1 cat=$2 stat=$3 places=$4 ids=$5 masks=$6 entries=$7
shift 7
newline='
'
echo "main $$" >&7
read -r go <&6 || exit 125
refuse() { echo "fail $1 $2" >&8; exit "$3"; }
moved='the workdir is not where it was: a link leads elsewhere'
if [ -n "$places" ]; then
  [ "$(IFS=$newline; set -f; "$stat" -c %d:%i -- $places 2>/dev/null)" = "$ids" ] || refuse workdir_refused "$moved" 126
fi
while read -r mask; do
  [ -n "$mask" ] || continue
  for entry in "$mask"/* "$mask"/.[!.]* "$mask"/..?*; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    case $newline$entries$newline in
      *"$newline$entry$newline"*) ;;
      *) refuse workdir_refused "$moved" 126 ;;
    esac
  done
done <<END
$masks
END
cd -P "$dir" 2>/dev/null || refuse workdir_refused 'the workdir cannot be entered' 126
[ "$(pwd -P; echo .)" = "$dir
." ] || refuse workdir_refused "$moved" 126
variables=$("$cat" <&3)
case $variables in
  *'# end') ;;
  *) refuse spawn_failed 'the environment could not be read' 125 ;;
esac
check() { # program path
  [ -n "$2" ] && [ -e "$2" ] || refuse spawn_failed "$1: not found" 127
  [ ! -d "$2" ] || refuse spawn_failed "$1: is a directory" 126
  [ -x "$2" ] || refuse spawn_failed "$1: permission denied" 126
  echo "run $2" >&8
}
search() { # program, the rest of PATH, the file found so far
  while [ -n "$2" ]; do
    set -- "$1" "\${2#*:}" "$3" "\${2%%:*}"
    set -- "$1" "$2" "$3" "\${4:-.}/$1"
    [ -f "$4" ] || continue
    set -- "$1" "$2" "$4"
    [ ! -x "$3" ] || break
  done
  check "$1" "$3"
}
unset LC_ALL OLDPWD
{ eval "$variables"; } 2>/dev/null
export PWD
case $1 in
  */*) check "$1" "$1" ;;
  *) search "$1" "$PATH:" '' ;;
esac
exec "$@" 3<&- 4<&- 5>&- 6<&- 7>&- 8>&-
`;

/** Names that shells use themselves. Some shells refuse to set them, and none passes on a foreign value. */
const SHELL_NAMES = new Set(['PWD', 'OLDPWD', 'PPID', 'OPTIND', 'LINENO', '_']);

/**
 * The file from which INNER reads the agent's environment. Omits names that no shell variable can have (such as `a.b`),
 * as dash does with its own environment.
 */
export function environmentFile(env: Readonly<Record<string, string>>): string {
  const lines = Object.entries(env)
    .filter(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !SHELL_NAMES.has(name))
    // With `command`, a name that the shell reserves (UID in bash) fails alone and does not end the script.
    .map(([name, value]) => `command export ${name}='${value.replaceAll("'", `'\\''`)}'\n`);
  return `${lines.join('')}# end\n`;
}

/**
 * A keeper that replaces a killed one. Arguments:
 * `svc mv cat ps boot nocgroup dd sleep w wt po pot pe pet f ft m mt i it`. It opens the FIFOs again and follows
 * commands. Live pumps and a live feeder continue. How far the journal was copied is known only from the open file that
 * keeper and feeder shared, so if that feeder dies too, the agent's stdin ends.
 */
export const REPLACEMENT_KEEPER = `
mv=$1 cat=$2 ps=$3 boot=$4 nocgroup=$5 dd=$6 sleep=$7 cgroup=
shift 7
w=$1 wt=$2 po=$3 pot=$4 pe=$5 pet=$6 f=$7 ft=$8 m=$9
shift 9
mt=$1 i=$2 it=$3
again=1 k=$$
${KEEPER}
trap '' HUP INT QUIT TERM USR1 USR2
st "$k"; kt=$t
exec 1>/dev/null 2>/dev/null 3<>pipes/out 4<>pipes/err 7<>pipes/ctl
if [ -n "$f" ] && [ ! -e stdin.eof ]; then exec 5<>pipes/in; fi
note
obey
`;

/** Reads and discards further output, so that a process that is kept neither blocks nor fills the disk. */
export const DEVNULL_PUMP = `trap '' HUP INT QUIT TERM; exec "$1" <"$2" >/dev/null 2>&1`;

/**
 * Arguments: `svc df sleep rm mv ps pause_kib resume_kib plenty_kib near_s far_s ample_s`; runs in the sessions folder. Each node
 * has one guard, which outlives it. It stops the pumps while the disk is nearly full, so that agents block when they
 * write instead of losing output. It ends after the last session.
 */
export const GUARD = `
df=$1 sleep=$2 rm=$3 mv=$4 ps=$5 pause=$6 resume=$7 plenty=$8 near=$9
shift 9
far=$1 ample=$2
trap '' HUP INT QUIT TERM
${START_TIME}
pumps() { # signals every live pump, or only checks whether there is one
  live=
  for file in */handle; do
    [ -e "$file" ] && [ ! -e "\${file%/handle}/ended" ] || continue
    while read -r name pid start; do
      case $name in pump_out | pump_err) ;; *) continue ;; esac
      st "$pid"
      [ -n "$t" ] && [ "$t" = "$start" ] || continue
      live=1
      [ -n "$1" ] || return
      kill "-$1" "$pid"
    done <"$file"
  done
  for folder in */; do
    [ ! -d "$folder" ] || [ -e "\${folder}handle" ] || [ -e "\${folder}ended" ] || live=1
  done
}
st $$
echo "$$ $t end" >.guard.new && "$mv" -f .guard.new .guard
turn=0 held=
[ -e .paused ] || pumps CONT # a guard that could not create the file and was killed may have left them stopped
while :; do
  free=$("$df" -Pk . | { read -r line; read -r name total used free line; echo "$free"; })
  case $free in '' | *[!0-9]*) free=$resume ;; esac
  if [ -n "$held" ] || [ -e .paused ]; then
    if [ "$free" -ge "$resume" ]; then pumps CONT; "$rm" -f .paused; held=; else pumps STOP; fi
  elif [ "$free" -lt "$pause" ]; then
    held=1 # because a full disk may refuse the file
    true >.paused # first, because the next guard must know; not a special builtin, whose failure would end the shell
    pumps STOP
  fi
  turn=$((turn + 1))
  if [ "$turn" -ge 5 ]; then
    turn=0
    pumps ''
    [ -n "$live" ] || break
  fi
  if [ "$free" -lt $((pause * 4)) ]; then "$sleep" "$near"
  elif [ "$free" -lt "$plenty" ]; then "$sleep" "$far"
  else turn=5; "$sleep" "$ample"; fi || "$sleep" 1
done
"$rm" -f .guard .paused
`;
