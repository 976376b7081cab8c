import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ProgramFinding } from '../../../core/node.ts';
import { findPreset, presets } from './catalog.ts';
import { permissionEnv, permissionSessionModes, presetRecord, toProgramQuestion } from './preset.ts';

const nothing: ProgramFinding = { path: null, version: null, env_set: [], files_found: [] };
const there: ProgramFinding = { ...nothing, path: '/bin/x', version: '1.2' };

function record(id: string, found: ProgramFinding | null) {
  return presetRecord(findPreset(id)!, found);
}

describe('presets', () => {
  it('match the expected list', () => {
    expect(presets.map(({ id }) => id).join(' ')).toBe(
      'demo claude codex gemini opencode qwen goose copilot cursor droid pi acp plain',
    );
  });

  it('contain no address, set only allowed variables, and mention what they set', () => {
    for (const preset of presets) {
      const { program, env, permission, notes } = preset;
      const words = [program?.install_hint, program?.sign_in?.hint, permission.note, ...notes].join(' ');
      expect(words).not.toMatch(/https?:|registry/);
      for (const name of Object.keys({ ...env, ...permissionEnv(preset) })) {
        expect(name).toMatch(/^[A-Z][A-Z0-9_]*$/);
        expect(words).toContain(name);
      }
    }
  });

  it('have steps to apply exactly if they guarantee that the agent asks', () => {
    for (const preset of presets) {
      const { guarantee, apply, acting_modes } = preset.permission;
      expect([preset.id, apply.length > 0]).toEqual([preset.id, guarantee === 'ask']);
      expect(acting_modes.filter((mode) => permissionSessionModes(preset).includes(mode))).toEqual([]);
    }
  });

  it('have state directories below the home folder only', () => {
    for (const dir of presets.flatMap(({ state_dirs }) => state_dirs)) {
      expect(dir).toMatch(/^\.[a-z]/);
      expect(posix.normalize(dir)).toBe(dir);
      expect(dir).not.toMatch(/(^|\/)\.\.(\/|$)|\/$/);
    }
  });

  it('have no question and no result if they have no program', () => {
    expect(toProgramQuestion(findPreset('plain')!)).toBeNull();
    const unknown = { command: null, argv: null, installed: null, signed_in: 'unknown' };
    expect(record('plain', null)).toMatchObject({ ...unknown, protocol: 'plain' });
    expect(record('acp', null)).toMatchObject({ ...unknown, protocol: 'acp' });
  });

  it('are installed if a path was found, and unknown if the node was not asked', () => {
    const shown = { command: 'droid exec --output-format acp', path: '/bin/x', version: '1.2' };
    expect(record('droid', there)).toMatchObject({ ...shown, installed: true });
    expect(record('droid', nothing)).toMatchObject({ installed: false, path: null, version: null });
    expect(record('droid', null)).toMatchObject({ installed: null, signed_in: 'unknown' });
  });

  it('are signed in if there is a variable or a file, otherwise as far as svc can tell', () => {
    expect(record('codex', { ...there, env_set: ['OPENAI_API_KEY'] }).signed_in).toBe('yes');
    expect(record('codex', { ...there, files_found: ['.codex/auth.json'] }).signed_in).toBe('yes');
    expect(record('codex', there).signed_in).toBe('no');
    // The login may be in a keychain.
    expect(record('claude', there).signed_in).toBe('unknown');
    expect(record('demo', there)).toMatchObject({ signed_in: 'yes', sign_in_hint: null });
  });
});
