/** The dialog that confirms deleting records without contacting their machine, and lists what stays on it. */
import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import { Dialog } from './dialog.tsx';
import { ActionError } from './states.tsx';

export function ForgetDialog({
  name,
  about,
  left,
  returning,
  act,
  onClose,
}: {
  name: string;
  /** What is deleted. */
  about: ReactNode;
  /** What stays on the machine; null: nothing. */
  left: ReactNode | null;
  /** What happens if the machine comes back after all. */
  returning: string;
  act: { error: unknown; isPending: boolean; mutate: () => void };
  onClose: () => void;
}) {
  return (
    <Dialog open onClose={onClose} title={`Forget ${name}?`}>
      <div className="flex flex-col gap-3">
        <p>{about}</p>
        {left && (
          <div>
            <p className="mb-1">This stays on the machine:</p>
            {left}
          </div>
        )}
        <p>{returning}</p>
        <ActionError error={act.error} />
        <div className="flex justify-end gap-2">
          <Button variant="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button variant="danger" busy={act.isPending} onClick={() => act.mutate()}>
            {act.isPending ? 'Forgetting…' : 'Forget'}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
