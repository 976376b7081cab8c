/** What a step is told, and what of its end is its output. */
import { isDeeper } from '../../acp/depth.ts';
import { limits } from '../../base/limits.ts';
import { type AttemptRow, findStep, outputBytes, type RunRow, specOf, stepsOf } from '../../store/runs.ts';
import type { Reader } from '../../store/store.ts';

/** What `$SVC_STEP_INPUT` holds. */
export interface StepInput {
  run_input: unknown;
  input: unknown;
  /** Outputs of the steps that it depends on; null of one that left none. */
  needs: Record<string, unknown>;
  /** What somebody gave it when it was resumed. */
  answer?: unknown;
}

/** A step as its leader is told of it. */
export interface StepReport {
  step_key: string;
  member_id: string;
  status: string;
  output: unknown;
  error_text: string | null;
}

/** What a leader that takes its rounds as plain sessions is told of one. */
export interface RoundInput {
  run_input: unknown;
  round: number;
  about: 'plan' | 'sum_up';
  members: { member_id: string; description: string; skills: string[] }[];
  steps: StepReport[];
}

export function stepInput(
  reader: Reader,
  run: RunRow,
  { step_key, attempt }: Pick<AttemptRow, 'step_key' | 'attempt'>,
): StepInput | RoundInput {
  const run_input = JSON.parse(run.input);
  if (step_key === '') return roundInput(reader, run, attempt);
  const step = findStep(reader, run.num, step_key)!;
  const needs = (JSON.parse(step.depends_on) as string[]).map((key) => [
    key,
    parsed(findStep(reader, run.num, key)?.output ?? null),
  ]);
  return {
    run_input,
    input: parsed(step.input),
    needs: Object.fromEntries(needs),
    ...(step.answer !== null && { answer: parsed(step.answer) }),
  };
}

function roundInput(reader: Reader, run: RunRow, round: number): RoundInput {
  const steps = stepsOf(reader, run.num).map((step) => ({
    step_key: step.step_key,
    member_id: step.member_id,
    status: step.status,
    output: parsed(step.output),
    error_text: step.error_text,
  }));
  return {
    run_input: JSON.parse(run.input),
    round,
    about: steps.length === 0 ? 'plan' : 'sum_up',
    members: specOf(run).members.map(({ member_id, description, skills }) => ({
      member_id,
      description,
      skills,
    })),
    steps,
  };
}

/** JSON where it parses, else text. `bytes` may be longer than what is kept, which the text then says. */
export function readOutput(bytes: Uint8Array): unknown {
  const kept = bytes.subarray(0, limits.step_output_bytes_max);
  const text = new TextDecoder().decode(kept);
  if (bytes.length > kept.length) return `${text}\n[the output goes on: only ${kept.length} bytes are kept]`;
  if (isDeeper(text, limits.json_depth_max)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Whether a run has room for the output, as JSON: a leader, the steps that follow and the run itself get all of them. */
export function hasRoom(reader: Reader, run_num: number, step_key: string, output: string | null): boolean {
  const bytes = Buffer.byteLength(output ?? '');
  if (bytes <= limits.step_output_small_bytes) return true;
  return bytes + outputBytes(reader, run_num, step_key) <= limits.run_outputs_bytes_max;
}

function parsed(json: string | null): unknown {
  return json === null ? null : JSON.parse(json);
}
