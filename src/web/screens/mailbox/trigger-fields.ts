/** The fields of a new trigger: what they mean, when it fires, and what is wrong with them. Pure. */
import { limits } from '../../../features/mailbox/limits.ts';
import { firstTimes, isZone, type Schedule, timeInZone } from '../../../features/mailbox/rules/schedule.ts';

export type Kind = 'once' | 'every' | 'cron';

export const unitSeconds = { seconds: 1, minutes: 60, hours: 3600, days: 86_400 } as const;
export type Unit = keyof typeof unitSeconds;

/** As typed. */
export type TriggerFields = {
  actor_id: string;
  kind: Kind;
  /** A local time in the zone. */
  at: string;
  every: string;
  unit: Unit;
  cron: string;
  timezone: string;
  text: string;
};

export type FieldErrors = { [field in 'at' | 'every' | 'cron' | 'timezone' | 'text']?: string };
/** As the API takes it: only one of the first three is set. */
export interface NewSchedule {
  at?: string;
  every_seconds?: number;
  cron?: string;
  timezone?: string;
}

interface ReadFields {
  errors: FieldErrors;
  /** Null if the fields about the time are invalid. */
  schedule: NewSchedule | null;
  /** When it fires first, Unix ms. */
  times: number[];
}

const TIMES_SHOWN = 3;
const NONE: Schedule = { at: null, every_seconds: null, cron: null, timezone: null };

export function readFields(fields: TriggerFields, now: number): ReadFields {
  const read = readers[fields.kind](fields, now);
  const errors = { ...read.errors };
  if (fields.text.trim() === '') errors.text = 'Enter a message.';
  return { ...read, errors };
}

const readers: Record<Kind, (fields: TriggerFields, now: number) => ReadFields> = {
  once: ({ at, timezone }, now) => {
    if (!isZone(timezone)) return invalid({ timezone: unknown_zone });
    const time = timeInZone(at, timezone);
    if (time === null) return invalid({ at: 'Choose a date and a time.' });
    if (time <= now) return invalid({ at: 'Choose a time in the future.' });
    return valid({ at: new Date(time).toISOString() }, { ...NONE, at: time }, now);
  },
  every: ({ every, unit }, now) => {
    const every_seconds = /^\d{1,9}$/.test(every.trim()) ? Number(every) * unitSeconds[unit] : null;
    if (every_seconds === null) return invalid({ every: 'Enter a whole number.' });
    const { trigger_every_s_min: min, trigger_every_s_max: max } = limits;
    if (every_seconds < min) return invalid({ every: `Enter at least ${min} seconds.` });
    if (every_seconds > max) return invalid({ every: `Enter at most ${max / unitSeconds.days} days.` });
    return valid({ every_seconds }, { ...NONE, every_seconds }, now);
  },
  cron: ({ cron: typed, timezone }, now) => {
    const cron = typed.trim();
    if (!isZone(timezone)) return invalid({ timezone: unknown_zone });
    if (cron === '') return invalid({ cron: 'Enter a cron pattern.' });
    try {
      return valid({ cron, timezone }, { ...NONE, cron, timezone }, now);
    } catch (error) {
      const never = String(error).includes('in the future');
      return invalid({ cron: never ? 'No future date matches this pattern.' : malformed_cron });
    }
  },
};

const unknown_zone = 'No time zone has this name. Choose one from the list, for example Europe/Berlin.';
const malformed_cron = 'Enter five fields: minute, hour, day of the month, month, and day of the week.';

function invalid(errors: FieldErrors): ReadFields {
  return { errors, schedule: null, times: [] };
}

function valid(schedule: NewSchedule, parsed: Schedule, now: number): ReadFields {
  return { errors: {}, schedule, times: firstTimes(parsed, now, TIMES_SHOWN) };
}
