import { expect, test } from 'vitest';
import { templateOf } from './first-screen.ts';

const opened = {
  page: 'agents',
  pathname: '/agents',
  search: '',
  hash: '',
  role: 'root',
  is_phone: false,
  is_collapsed: false,
};

test('a page shows the first screen of its user and screen', () => {
  expect(templateOf(opened)).toBe('desk-root');
  expect(templateOf({ ...opened, role: 'user', is_phone: true })).toBe('phone-user');
  expect(templateOf({ ...opened, page: 'home', pathname: '/' })).toBe('desk-root');
  expect(templateOf({ ...opened, page: 'agents.any', pathname: '/agents/agt_1' })).toBe('desk-root');
  const login = { ...opened, page: 'login', pathname: '/login', role: null };
  expect(templateOf({ ...login, search: '?to=%2Fnodes' })).toBe('desk-guest');
});

test('a URL whose screen may differ shows none', () => {
  expect(templateOf({ ...opened, page: undefined })).toBe(null);
  expect(templateOf({ ...opened, page: 'settings', pathname: '/settings/devices' })).toBe(null);
  expect(templateOf({ ...opened, search: '?show=failed' })).toBe(null);
});

test('the form of a join link needs its token', () => {
  const join = { ...opened, page: 'join', pathname: '/join', role: null };
  expect(templateOf(join)).toBe(null);
  expect(templateOf({ ...join, hash: '#t=7Q4ZKD' })).toBe('desk-guest');
});

test('a collapsed sidebar is only that of wide screens', () => {
  expect(templateOf({ ...opened, is_collapsed: true })).toBe(null);
  expect(templateOf({ ...opened, is_collapsed: true, is_phone: true })).toBe('phone-root');
});
