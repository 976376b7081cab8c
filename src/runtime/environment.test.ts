import { expect, test } from 'vitest';
import { commonEnvironment } from './environment.ts';

const base = { allow: null, run_as: null, bin_dir: '/svc/bin' };

test('what npm adds to a service that it starts is not passed on', () => {
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

test('without npm the environment is passed on as it is, but for what is the service’s own', () => {
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
