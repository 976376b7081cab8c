import { describe, expect, it } from 'vitest';
import { readFields, type TriggerFields } from './trigger-fields.ts';

const now = Date.parse('2026-06-01T12:00:00Z');
const fields: TriggerFields = {
  ...{ actor_id: 'user:ana', kind: 'once', at: '2026-06-01T15:00', every: '15', unit: 'minutes' },
  ...{ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', text: 'Look' },
};
const read = (more: Partial<TriggerFields>) => readFields({ ...fields, ...more }, now);
const utc = (times: number[]) => times.map((time) => new Date(time).toISOString());

describe('the fields of a new trigger', () => {
  it('give a time in their zone', () => {
    const { schedule, times, errors } = read({});
    expect({ schedule, errors }).toEqual({ schedule: { at: '2026-06-01T13:00:00.000Z' }, errors: {} });
    expect(utc(times)).toEqual(['2026-06-01T13:00:00.000Z']);
  });
  it('give an interval in seconds', () => {
    const { schedule, times } = read({ kind: 'every', every: ' 2 ', unit: 'hours' });
    expect(schedule).toEqual({ every_seconds: 7200 });
    expect(utc(times)).toEqual([14, 16, 18].map((hour) => `2026-06-01T${hour}:00:00.000Z`));
  });
  it('give a cron pattern with its zone', () => {
    const { schedule, times } = read({ kind: 'cron', cron: ' 0 9 * * 1-5 ' });
    expect(schedule).toEqual({ cron: '0 9 * * 1-5', timezone: 'Europe/Berlin' });
    expect(utc(times)).toEqual([2, 3, 4].map((day) => `2026-06-0${day}T07:00:00.000Z`));
  });
  it.each([
    [{ at: '' }, { at: 'Choose a date and a time.' }],
    [{ at: '2026-06-01T14:00' }, { at: 'Choose a time in the future.' }],
    [{ timezone: 'Mars' }, { timezone: expect.stringContaining('No time zone has this name') }],
    [{ kind: 'every', every: '1.5' }, { every: 'Enter a whole number.' }],
    [{ kind: 'every', every: '9', unit: 'seconds' }, { every: 'Enter at least 10 seconds.' }],
    [{ kind: 'every', every: '367', unit: 'days' }, { every: 'Enter at most 366 days.' }],
    [{ kind: 'cron', cron: '' }, { cron: 'Enter a cron pattern.' }],
    [{ kind: 'cron', cron: 'soon' }, { cron: expect.stringContaining('Enter five fields') }],
    [{ kind: 'cron', cron: '0 0 30 2 *' }, { cron: 'No future date matches this pattern.' }],
    [{ kind: 'cron', timezone: '' }, { timezone: expect.stringContaining('No time zone has this name') }],
    [{ text: ' ' }, { text: 'Enter a message.' }],
  ] as const)('explain what is wrong with %o', (more, errors) => {
    expect(read(more).errors).toEqual(errors);
  });
  it('show when it fires before there is a message', () => {
    expect(read({ text: '' }).times).toHaveLength(1);
  });
});
