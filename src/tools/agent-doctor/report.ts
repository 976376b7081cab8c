/** The doctor's report: one finding per check, in the order of the examination, and a grade for each. */
import type { ModelRequest } from './model/server.ts';

/**
 * `ok`: correct. `weak`: it works, with a defect that a client must handle. `failed`: something that an agent must
 * do, or claims to support, does not work. `skipped`: there was nothing to check.
 */
export const grades = ['ok', 'weak', 'failed', 'skipped'] as const;
export type Grade = (typeof grades)[number];

export const checkNames = [
  'start',
  'session',
  'sign-in',
  'turn',
  'permission',
  'cancel',
  'second prompt',
  'permission to run',
  'permission to fetch',
  'orphans after KILL',
  'load after KILL',
  'TERM',
  'orphans after TERM',
  'stdout',
  'model',
] as const;
export type CheckName = (typeof checkNames)[number];

export interface Finding {
  grade: Grade;
  detail: string;
  /** The same for programs, with details that the text leaves out. */
  facts?: Record<string, unknown>;
}

export interface Check extends Finding {
  number: number;
  name: CheckName;
  /** Null if it was skipped, or took no separate time. */
  duration_ms: number | null;
}

export interface Report {
  command: readonly string[];
  /** The name that the agent reports. */
  agent: { name: string; version: string } | null;
  /** The known agent that it was recognized as. */
  known_as: string | null;
  grade: Grade;
  checks: Check[];
  /** The requests to the scripted model; null without one. */
  model_requests: readonly ModelRequest[] | null;
  /** The last part of its stderr. */
  stderr: string;
}

export const ok = (detail: string, facts?: Finding['facts']): Finding => finding('ok', detail, facts);
export const weak = (detail: string, facts?: Finding['facts']): Finding => finding('weak', detail, facts);
export const failed = (detail: string, facts?: Finding['facts']): Finding => finding('failed', detail, facts);
export const skipped = (detail: string): Finding => finding('skipped', detail);

function finding(grade: Grade, detail: string, facts?: Finding['facts']): Finding {
  return { grade, detail, ...(facts && { facts }) };
}

export function totalGrade(checks: readonly Check[]): Grade {
  const worst = (['failed', 'weak', 'ok'] as const).find((grade) =>
    checks.some((check) => check.grade === grade),
  );
  return worst ?? 'skipped';
}
