import { expect, test } from 'vitest';
import { type ActorAction, actorRoles, authorizeAction } from './rights.ts';

test.each<[ActorAction, leader: boolean, worker: boolean, human: boolean]>([
  ['team.see', true, true, true],
  ['mail.use', true, true, true],
  ['triggers.use', true, true, true],
  ['steps.see', true, true, true],
  ['own_step.end', true, true, true],
  ['steps.end', true, false, true],
  ['steps.add', true, false, true],
  ['run.end', true, false, true],
])('%s: leader %s, worker %s, human %s', (action, ...allowed) => {
  for (const [at, role] of actorRoles.entries()) {
    const act = () => authorizeAction(role, action);
    if (allowed[at]) expect(act).not.toThrow();
    else expect(act).toThrow('not allowed');
  }
});
