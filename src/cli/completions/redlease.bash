# bash completion for redlease(1). tests/tool/completion_test.cpp compares it with what the tool itself says.

_redlease_options() { # command
  case $1 in
    every) echo --url --password-file --prefix --tls-ca --tls-cert --tls-key --tls-name --json --quiet --help ;;
    run)
      echo --ttl --wait --stop-before --grace --max-hold --label --op-timeout --fence-floor --busy-exit
      ;;
    acquire) echo --ttl --wait --op-timeout --label --fence-floor --busy-exit ;;
    renew) echo --token --ttl ;;
    release) echo --token ;;
    show) ;;
    ls) echo --all ;;
    wait) echo --wait ;;
    break) echo --yes ;;
    watch) echo --interval --for ;;
    trace) echo --pattern --for --interval --output ;;
    doctor) echo --ttl --op-timeout --scratch-key --node --server-only ;;
    bench) echo --for ;;
  esac
}

_redlease() {
  local commands="run acquire renew release show ls wait break watch trace doctor bench"
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command="" word i
  COMPREPLY=()
  # bash takes --option=value apart at the "=".
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $before == "=" ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ -n $command && $word == "--" ]]; then
      # What run is to run.
      if ((i + 1 == COMP_CWORD)); then
        COMPREPLY=($(compgen -c -- "$current"))
      else
        compopt -o default 2>/dev/null
      fi
      return
    fi
    if [[ -z $command && " $commands " == *" $word "* ]]; then command=$word; fi
  done
  case $before in
    --password-file | --tls-ca | --tls-cert | --tls-key | --output)
      compopt -o filenames 2>/dev/null
      local IFS=$'\n'
      COMPREPLY=($(compgen -f -- "$current"))
      return
      ;;
    --wait) COMPREPLY=($(compgen -W "0 10s 1m forever" -- "$current")) && return ;;
    --url) COMPREPLY=($(compgen -W "redis:// rediss:// unix:/// memory:" -- "$current")) && return ;;
    --ttl | --stop-before | --grace | --max-hold | --op-timeout | --interval | --for) return ;;
    --label | --fence-floor | --busy-exit | --token | --prefix | --tls-name | --pattern | --scratch-key) return ;;
  esac
  if [[ -z $command ]]; then
    COMPREPLY=($(compgen -W "$commands --version $(_redlease_options every)" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$(_redlease_options "$command") $(_redlease_options every)" -- "$current"))
  fi
}

complete -F _redlease redlease
