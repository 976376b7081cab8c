import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Plan } from './screens/agent/side/plan.tsx';
import { table } from './table.ts';
import { Status } from './ui/status.tsx';

const inherited = ['constructor', '__proto__', 'toString', 'hasOwnProperty'];

test('a table has its own keys only', () => {
  const words = table({ done: 'completed' });
  expect(words.done).toBe('completed');
  expect(inherited.map((key) => words[key])).toEqual(inherited.map(() => undefined));
});

test.each(inherited)('a status that an agent calls %s is shown as an unknown one', (status) => {
  const entries = [{ content: 'Write tests', priority: 'high', status }];
  const plan = createElement(Plan, { plan: { entries, done: 0, total: 1 } });
  expect(renderToStaticMarkup(plan)).toContain('Write tests');
  expect(renderToStaticMarkup(createElement(Status, { status })).toLowerCase()).toContain(
    status.toLowerCase(),
  );
});
