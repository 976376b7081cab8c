import { describe, expect, it } from 'vitest';
import { operationIds } from '../api/routes.ts';
import type { Reader, Tx } from '../store/store.ts';
import type { Feature } from './feature.ts';
import { FeatureSet } from './feature-set.ts';

const tx = {} as Tx;

describe('slots', () => {
  const slots: [string, Omit<Feature, 'name'>][] = [
    ['routes.getMe', { routes: { getMe: () => ({}) as never } }],
    ['actor_methods.step-list', { actor_methods: { 'step-list': async () => ({}) as never } }],
    ['facts.mail', { facts: { mail: {} } }],
    ['intents.start', { intents: { start: async () => null } }],
    ['timers.trigger', { timers: { trigger: async () => {} } }],
  ];
  for (const [place, slot] of slots) {
    it(`rejects two features that both define ${place}`, () => {
      const features = new FeatureSet();
      features.add({ name: 'a', ...slot });
      expect(() => features.add({ name: 'b', ...slot })).toThrow(`${place} is in two features: a and b`);
    });
  }

  it('merges the slots of all features', () => {
    const features = new FeatureSet();
    features.add({ name: 'a', facts: { one: {} }, timers: { trigger: async () => {} } });
    features.add({ name: 'b', facts: { two: {} }, timers: { push_retry: async () => {} } });
    expect(Object.keys(features.facts())).toEqual(['one', 'two']);
    expect(Object.keys(features.timers())).toEqual(['trigger', 'push_retry']);
  });

  it('fails to start if an operation has no handler', () => {
    const features = new FeatureSet();
    const [missing, ...handled] = operationIds;
    const routes = Object.fromEntries(handled.map((id) => [id, () => {}])) as Feature['routes'];
    features.add({ name: 'a', routes: routes! });
    expect(() => features.routes()).toThrow(`no feature handles ${missing}`);
  });

  it('fails to start if an actor method has no implementation', () => {
    expect(() => new FeatureSet().actorMethods()).toThrow('no feature implements');
  });
});

describe('hooks', () => {
  it('calls the hooks of all features in order, including features that were added later', async () => {
    const features = new FeatureSet();
    const called: string[] = [];
    const { session } = features;
    features.add({ name: 'a', session: { beforeStop: async (_tx, id) => void called.push(`a ${id}`) } });
    features.add({ name: 'b' });
    features.add({ name: 'c', session: { beforeStop: async (_tx, id) => void called.push(`c ${id}`) } });
    await session.beforeStop(tx, 'ses_a');
    expect(called).toEqual(['a ses_a', 'c ses_a']);
  });

  it('merges the environments of a session', async () => {
    const features = new FeatureSet();
    features.add({
      name: 'a',
      session: { environment: async () => ({ env: { A: '1' }, step_input: null }) },
    });
    features.add({
      name: 'b',
      session: { environment: async () => ({ env: { B: '2' }, step_input: '{}' }) },
    });
    const environment = await features.session.environment({} as Reader, 'ses_a');
    expect(environment).toEqual({ env: { A: '1', B: '2' }, step_input: '{}' });
  });

  it('have no effect if no feature implements them', async () => {
    const { session, extensions, remote_nodes } = new FeatureSet();
    expect(await session.environment({} as Reader, 'ses_a')).toEqual({ env: {}, step_input: null });
    expect(await session.awaitsAnswer({} as Reader, 1, 1)).toBe(false);
    expect(await extensions.passkeysOf('usr_a')).toEqual([]);
    expect(await extensions.pendingMail(tx, { run_num: 1, actor_id: 'a', prompt_id: 'p' })).toBeNull();
    expect(remote_nodes.find('nod_a')).toBeNull();
  });
});

describe('closing', () => {
  it('closes in reverse order, and all of them if one fails', async () => {
    const features = new FeatureSet();
    const closed: string[] = [];
    const feature = (name: string): Feature => ({ name, close: async () => void closed.push(name) });
    features.add(feature('a'));
    features.add({ name: 'b', close: () => Promise.reject(new Error('stuck')) });
    features.add(feature('c'));
    await expect(features.close()).rejects.toThrow('features could not be closed');
    expect(closed).toEqual(['c', 'a']);
  });

  it('sweeps the other features if one fails', async () => {
    const features = new FeatureSet();
    const failed: string[] = [];
    let swept = 0;
    features.add({ name: 'a', sweep: () => Promise.reject(new Error('busy')) });
    features.add({ name: 'b', sweep: async () => ++swept });
    await features.sweep((feature) => failed.push(feature));
    expect([failed, swept]).toEqual([['a'], 1]);
  });
});
