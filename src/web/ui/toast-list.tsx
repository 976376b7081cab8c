/** The toasts on the screen. */
import { Toast } from '@base-ui/react/toast';
import { X } from 'lucide-react';
import { useEffect } from 'react';

const manager = Toast.createToastManager();
/** The manager drops toasts that are added before the list is on the screen. */
const shown = Promise.withResolvers<void>();

export async function addToast(title: string, description?: string): Promise<void> {
  await shown.promise;
  manager.add({ title, ...(description !== undefined && { description }), timeout: 5000 });
}

export function ToastList() {
  useEffect(() => shown.resolve(), []);
  return (
    <Toast.Provider toastManager={manager}>
      <Toast.Portal>
        <Toast.Viewport className="fixed right-3 bottom-16 z-50 flex w-[min(340px,92vw)] flex-col gap-2 md:bottom-3">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  );
}

function List() {
  const { toasts } = Toast.useToastManager();
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      className="flex animate-enter items-start gap-2 rounded-lg border border-line bg-raised px-3 py-2 shadow-overlay"
    >
      <div className="min-w-0 flex-1">
        <Toast.Title className="font-medium" />
        <Toast.Description className="break-words text-muted" />
      </div>
      <Toast.Close aria-label="Dismiss" className="tap min-w-7 text-muted">
        <X className="size-4" />
      </Toast.Close>
    </Toast.Root>
  ));
}
