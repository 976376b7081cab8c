/** The language of a file, by its name (pure). */

/** File extensions and whole file names; the languages have Prism's names. */
const languages = {
  bash: ['sh', 'bash', 'zsh', '.bashrc', '.profile', '.zshrc'],
  c: ['c', 'h'],
  cpp: ['cc', 'cpp', 'cxx', 'hh', 'hpp'],
  csharp: ['cs'],
  css: ['css'],
  docker: ['dockerfile'],
  go: ['go'],
  graphql: ['graphql', 'gql'],
  ini: ['ini', 'cfg', 'conf', 'editorconfig'],
  java: ['java'],
  javascript: ['js', 'mjs', 'cjs'],
  json: ['json', 'jsonc', 'webmanifest'],
  jsx: ['jsx'],
  kotlin: ['kt', 'kts'],
  lua: ['lua'],
  makefile: ['makefile', 'mk'],
  markdown: ['md', 'markdown'],
  markup: ['html', 'htm', 'xml', 'svg', 'vue', 'svelte'],
  php: ['php'],
  protobuf: ['proto'],
  python: ['py', 'pyi'],
  ruby: ['rb', 'gemfile', 'rakefile'],
  rust: ['rs'],
  scss: ['scss'],
  sql: ['sql'],
  swift: ['swift'],
  toml: ['toml'],
  tsx: ['tsx'],
  typescript: ['ts', 'mts', 'cts'],
  yaml: ['yml', 'yaml'],
} as const;

export type Language = keyof typeof languages;

const by_ending = new Map(
  (Object.keys(languages) as Language[]).flatMap((language) =>
    languages[language].map((ending: string) => [ending, language] as const),
  ),
);

/** Null: there is no syntax highlighting for this file. */
export function detectLanguage(path: string): Language | null {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return by_ending.get(name) ?? by_ending.get(name.slice(name.lastIndexOf('.') + 1)) ?? null;
}
