/** What the doctor hands back: one finding per check, in the order of the examination, and a grade for all of it. */
import type { ModelRequest } from './model/server.ts';

/**
 * `ok`: as it should be. `weak`: it works, and somebody has to make up for something. `failed`: what an agent must do, or
 * says that it can do, does not work. `skipped`: there was nothing to look at.
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
  /** The same for programs, with what the detail leaves out. */
  facts?: Record<string, unknown>;
}

export interface Check extends Finding {
  number: number;
  name: CheckName;
  /** Null when it was skipped, or took no time of its own. */
  duration_ms: number | null;
}

export interface Report {
  command: readonly string[];
  /** As it calls itself. */
  agent: { name: string; version: string } | null;
  /** The known agent that it was taken for. */
  known_as: string | null;
  grade: Grade;
  checks: Check[];
  /** What the scripted model was asked; null without one. */
  model_requests: readonly ModelRequest[] | null;
  /** The end of what it wrote there. */
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
