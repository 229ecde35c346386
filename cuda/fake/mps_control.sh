#!/usr/bin/env bash
# Stands in for nvidia-cuda-mps-control in tests: `-f` is the daemon, no argument reads a command from stdin. The daemon
# starts a "server" that detaches itself, as the real one does, and lists both process ids in the log directory.
# -stubborn: the daemon ignores quit and SIGTERM. -broken: it ends at once, with a message.
set -u
pipe=$CUDA_MPS_PIPE_DIRECTORY
log=$CUDA_MPS_LOG_DIRECTORY
if [[ ${1-} != -f ]]; then
  read -r command _
  case $command in
    quit) [[ -p $pipe/fake ]] && echo quit >"$pipe/fake" ;;
    get_server_list) sed -n 2p "$log/pids" ;;
    *) echo "unknown command $command"; exit 1 ;;
  esac
  exit 0
fi
[[ ${2-} == -broken ]] && { echo "no device to control"; exit 4; }
[[ ${2-} == -stubborn ]] && trap '' TERM
mkfifo "$pipe/fake"
exec 3<>"$pipe/fake" # both ends: no end-of-file between two commands
(setsid sleep 1000 >/dev/null 2>&1 & echo "$!" >"$log/server")
{ echo "$$"; cat "$log/server"; } >"$log/pids"
: >"$pipe/control"
while read -r command <&3; do
  [[ $command == quit && ${2-} != -stubborn ]] && { kill "$(cat "$log/server")"; exit 0; }
done
