import { describe, expect, it } from 'vitest';
import { cronText, intervalText, scheduleText } from './schedule-text.ts';

describe('the text of an interval', () => {
  it('uses the largest unit without a fraction', () => {
    const texts = [10, 60, 90, 900, 3600, 7200, 86_400, 172_800].map(intervalText);
    expect(texts).toEqual([
      ...['every 10 seconds', 'every minute', 'every 90 seconds', 'every 15 minutes'],
      ...['every hour', 'every 2 hours', 'every day', 'every 2 days'],
    ]);
  });
});

describe('the text of a cron pattern', () => {
  it.each([
    ['0 9 * * 1-5', 'weekdays at 09:00'],
    ['0 9 * * MON-FRI', 'weekdays at 09:00'],
    ['5 17 * * *', 'every day at 17:05'],
    ['0 9 * * 1', 'Mondays at 09:00'],
    ['0 9 * * 7', 'Sundays at 09:00'],
    ['30 6 1 * *', 'on day 1 of every month at 06:30'],
    ['*/15 * * * *', 'every 15 minutes'],
    ['* * * * *', 'every minute'],
    ['5 * * * *', 'every hour at :05'],
  ])('says when %s fires', (pattern, text) => {
    expect(cronText(pattern)).toBe(text);
  });
  it.each([
    ...['*/7 * * * *', '*/0 * * * *', '0 9 1 * 1', '0 9 * 2 *', '0 9 L * *', '0 9,17 * * *', '0 9 * * 1,3'],
    ...['0 */2 * * 1', '@daily', ''],
  ])('is not given for %s', (pattern) => {
    expect(cronText(pattern)).toBe(null);
  });
});

describe('the text of a schedule', () => {
  const none = { every_seconds: null, cron: null, timezone: null };
  it('names the zone of a cron pattern, which is UTC by default', () => {
    expect(scheduleText({ ...none, cron: '0 9 * * *' })).toEqual({ text: 'every day at 09:00, UTC' });
    expect(scheduleText({ ...none, cron: '0 9 1 1 *', timezone: 'Asia/Kolkata' })).toEqual({
      code: '0 9 1 1 *',
      zone: 'Asia/Kolkata',
    });
  });
  it('is short for a trigger without one', () => {
    expect(scheduleText(none)).toEqual({ text: 'once' });
    expect(scheduleText({ ...none, every_seconds: 60 })).toEqual({ text: 'every minute' });
  });
});
