import { expect, test } from 'vitest';
import { presets } from '../../../features/presets/rules/catalog.ts';
import { presetRecord } from '../../../features/presets/rules/preset.ts';
import { sortPresets } from './found.ts';

/** As a node reports them on which only these programs are installed. */
const on = (installed: readonly string[], signed_in: readonly string[] = []) =>
  presets.map((preset) =>
    presetRecord(preset, {
      path: installed.includes(preset.id) ? `/bin/${preset.id}` : null,
      version: null,
      env_set: signed_in.includes(preset.id) ? ['KEY'] : [],
      files_found: [],
    }),
  );
const ids = (some: readonly { id: string }[] = []) => some.map(({ id }) => id);

test('lists installed agents, those that need a sign-in last, without what comes with svc', () => {
  const sorted = sortPresets(on(['codex', 'claude', 'demo'], ['claude']));
  expect(ids(sorted?.found)).toEqual(['claude', 'codex']);
  expect(ids(sorted?.missing)).toContain('gemini');
  expect(ids(sorted?.missing)).not.toContain('plain');
  expect(sortPresets(on([]))?.found).toEqual([]);
});

test('reports nothing of a node that is too old to look for programs', () => {
  expect(sortPresets(presets.map((preset) => presetRecord(preset, null)))).toBeUndefined();
});
