import { expect, test } from 'vitest';
import { commonEnvironment } from './environment.ts';

const base = { allow: null, run_as: null, sandboxed: false, bin_dir: '/svc/bin' };

test('omits the variables and PATH folders that npm adds', () => {
  const own = {
    PATH: '/svc/node_modules/.bin:/node_modules/.bin:/npm/lib/node-gyp-bin:/home/ana/node_modules/.bin/x:/usr/bin',
    HOME: '/home/ana',
    NODE: '/svc/node_modules/node/bin/node',
    INIT_CWD: '/svc',
    NODE_OPTIONS: '--max-old-space-size=100',
    npm_lifecycle_event: 'start',
    npm_config_registry: 'x',
    npm_package_json: '/svc/package.json',
  };
  expect(commonEnvironment({ ...base, own })).toEqual({
    PATH: '/svc/bin:/home/ana/node_modules/.bin/x:/usr/bin',
    HOME: '/home/ana',
    NODE_OPTIONS: '--max-old-space-size=100',
  });
});

test('if npm did not start the service, omits only the service’s own variables', () => {
  const own = {
    PATH: '/x/node_modules/.bin:/usr/bin',
    NODE: 'mine',
    npm_config_registry: 'x',
    SVC_TOKEN: 's',
  };
  expect(commonEnvironment({ ...base, own })).toEqual({
    PATH: '/svc/bin:/x/node_modules/.bin:/usr/bin',
    NODE: 'mine',
    npm_config_registry: 'x',
  });
});

test.each([
  { name: 'as another user', run_as: { name: 'bob', home: '/home/bob', uid: 1, gid: 1 } },
  { name: 'in a sandbox', sandboxed: true },
])(
  'agents $name do not get variables that name folders of the service’s user',
  ({ name: _, ...confined }) => {
    const own = { XDG_DATA_HOME: '/home/ana/data', XDG_RUNTIME_DIR: '/run/user/1', XDG_SESSION_TYPE: 'tty' };
    const env = commonEnvironment({ ...base, ...confined, own }, { XDG_CONFIG_HOME: '/own' });
    const names = Object.keys(env).filter((name) => name.startsWith('XDG_'));
    expect(names).toEqual(['XDG_SESSION_TYPE', 'XDG_CONFIG_HOME']);
  },
);
