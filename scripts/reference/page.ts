/** Markdown of the generated reference pages. */

/** `intro`: one sentence that says what the page is for. `sources`: what the page is generated from. */
export function page(
  title: string,
  intro: string,
  sources: readonly string[],
  parts: readonly string[],
): string {
  const origin = `This page is generated from ${sources.map(code).join(' and ')} by \`npm run generate\`; do not edit it.`;
  return `${[`# ${title}`, intro, origin, ...parts].join('\n\n')}\n`;
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

export function code(text: string): string {
  return `\`${text}\``;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}
