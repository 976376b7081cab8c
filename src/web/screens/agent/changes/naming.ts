/**
 * A worker that names the words of code: keywords, strings, comments. What a grammar makes of lines that an agent wrote may
 * take for ever, so it is not the page that waits for it.
 */
import bash from 'refractor/bash';
import c from 'refractor/c';
import { refractor, type Syntax } from 'refractor/core';
import cpp from 'refractor/cpp';
import csharp from 'refractor/csharp';
import css from 'refractor/css';
import docker from 'refractor/docker';
import go from 'refractor/go';
import graphql from 'refractor/graphql';
import ini from 'refractor/ini';
import java from 'refractor/java';
import javascript from 'refractor/javascript';
import json from 'refractor/json';
import jsx from 'refractor/jsx';
import kotlin from 'refractor/kotlin';
import lua from 'refractor/lua';
import makefile from 'refractor/makefile';
import markdown from 'refractor/markdown';
import markup from 'refractor/markup';
import php from 'refractor/php';
import protobuf from 'refractor/protobuf';
import python from 'refractor/python';
import ruby from 'refractor/ruby';
import rust from 'refractor/rust';
import scss from 'refractor/scss';
import sql from 'refractor/sql';
import swift from 'refractor/swift';
import toml from 'refractor/toml';
import tsx from 'refractor/tsx';
import typescript from 'refractor/typescript';
import yaml from 'refractor/yaml';
import type { Language } from './languages.ts';
import type { Named, ToName } from './tokens.ts';

const grammars: Record<Language, Syntax> = {
  bash,
  c,
  cpp,
  csharp,
  css,
  docker,
  go,
  graphql,
  ini,
  java,
  javascript,
  json,
  jsx,
  kotlin,
  lua,
  makefile,
  markdown,
  markup,
  php,
  protobuf,
  python,
  ruby,
  rust,
  scss,
  sql,
  swift,
  toml,
  tsx,
  typescript,
  yaml,
};
for (const grammar of Object.values(grammars)) refractor.register(grammar);

addEventListener('message', ({ data: { language, texts } }: MessageEvent<ToName>) => {
  postMessage(texts.map((text) => refractor.highlight(text, language).children) satisfies Named);
});
