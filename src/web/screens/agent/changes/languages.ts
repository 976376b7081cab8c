/** In which language a file is written, by its name (pure). */

/** By the ending of the name, or the whole name; the names of languages are Prism's. */
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

/** Null: it is none that has colours. */
export function languageOf(path: string): Language | null {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  return by_ending.get(name) ?? by_ending.get(name.slice(name.lastIndexOf('.') + 1)) ?? null;
}
