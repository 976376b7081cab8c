/** Formats an argv as one command line, quoting words for a POSIX shell where needed: to show, or to paste into a shell. */
export function showArgv(argv: readonly string[]): string {
  return argv
    .map((word) => (/^[A-Za-z0-9_%+,./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}
