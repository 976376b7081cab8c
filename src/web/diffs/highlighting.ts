/**
 * A worker for syntax highlighting. A grammar may take unbounded time on an agent's text, so it runs outside the page and
 * can be terminated.
 */
import { refractor, type Syntax } from 'refractor/core';
import { COLORED_MAX, countColored } from './colored.ts';
import type { Language } from './languages.ts';
import type { Highlighted, HighlightRequest } from './tokens.ts';

/** Each grammar is loaded when a file in its language is shown. */
const grammars: Record<Language, () => Promise<{ default: Syntax }>> = {
  bash: () => import('refractor/bash'),
  c: () => import('refractor/c'),
  cpp: () => import('refractor/cpp'),
  csharp: () => import('refractor/csharp'),
  css: () => import('refractor/css'),
  docker: () => import('refractor/docker'),
  go: () => import('refractor/go'),
  graphql: () => import('refractor/graphql'),
  ini: () => import('refractor/ini'),
  java: () => import('refractor/java'),
  javascript: () => import('refractor/javascript'),
  json: () => import('refractor/json'),
  jsx: () => import('refractor/jsx'),
  kotlin: () => import('refractor/kotlin'),
  lua: () => import('refractor/lua'),
  makefile: () => import('refractor/makefile'),
  markdown: () => import('refractor/markdown'),
  markup: () => import('refractor/markup'),
  php: () => import('refractor/php'),
  protobuf: () => import('refractor/protobuf'),
  python: () => import('refractor/python'),
  ruby: () => import('refractor/ruby'),
  rust: () => import('refractor/rust'),
  scss: () => import('refractor/scss'),
  sql: () => import('refractor/sql'),
  swift: () => import('refractor/swift'),
  toml: () => import('refractor/toml'),
  tsx: () => import('refractor/tsx'),
  typescript: () => import('refractor/typescript'),
  yaml: () => import('refractor/yaml'),
};

addEventListener('message', async ({ data: { language, texts } }: MessageEvent<HighlightRequest>) => {
  refractor.register((await grammars[language]()).default);
  const highlighted: Highlighted = texts.map((text) => refractor.highlight(text, language).children);
  // Without an answer, the diff stays without colors.
  if (highlighted.reduce((sum, nodes) => sum + countColored(nodes), 0) <= COLORED_MAX)
    postMessage(highlighted);
});
