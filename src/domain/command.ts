/** How an argv is shown as one command: each word quoted for a POSIX shell where it needs to be. For show only. */
export function showArgv(argv: readonly string[]): string {
  return argv
    .map((word) => (/^[A-Za-z0-9_%+,./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}
