/** Verifies the audit log's hash chain. The verdict stays until the page is reloaded, and says how long ago it was. */
import { queryOptions, useQuery } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, RefreshCw, ShieldCheck } from 'lucide-react';
import type { ReactNode } from 'react';
import { type Answered, call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { cx } from '../../ui/cx.ts';
import { Ago } from '../../ui/time.tsx';

/** Read only on request, because it reads the whole log. */
const verdictQuery = queryOptions({
  queryKey: keys.audit_verified,
  queryFn: ({ signal }) => call('verifyAudit', { signal }),
  enabled: false,
  gcTime: Number.POSITIVE_INFINITY,
  retry: false,
});

/** The button, until there is a verdict, and the line with the verdict for the toolbar. */
export function useVerify() {
  const { data, error, dataUpdatedAt, isFetching, refetch } = useQuery(verdictQuery);
  const verify = () => void refetch();
  const is_known = data !== undefined || error !== null;
  const is_sound = !error && data?.broken_id === null;
  return {
    button: !is_known && (
      <Button icon={<ShieldCheck aria-hidden />} busy={isFetching} onClick={verify}>
        Verify log
      </Button>
    ),
    result: (
      <div role="status" className="w-full empty:hidden">
        {is_known && (
          <div
            className={cx(
              'flex flex-wrap items-center gap-x-1 rounded-md text-sm',
              !is_sound && 'bg-removed px-2',
            )}
          >
            {error ? (
              <Finding is_sound={false}>The log could not be verified: {errorMessage(error)}</Finding>
            ) : (
              data && <Verdict {...data} at={dataUpdatedAt} />
            )}
            <IconButton
              label="Verify again"
              icon={<RefreshCw aria-hidden />}
              busy={isFetching}
              onClick={verify}
            />
          </div>
        )}
      </div>
    ),
  };
}

function Verdict({ records, broken_id, head, at }: Answered<'verifyAudit'> & { at: number }) {
  return (
    <>
      {broken_id === null ? (
        <Finding is_sound>
          Verified to #{records}, <SilentAgo at={at} />
        </Finding>
      ) : (
        <Finding is_sound={false}>
          Record #{broken_id} was changed, or records before it are missing. The first {records} records are
          intact. Checked <SilentAgo at={at} />.
        </Finding>
      )}
      <Copy text={head} label="Copy head" variant="quiet" />
    </>
  );
}

/** How long ago, which screen readers do not announce whenever it changes. */
function SilentAgo({ at }: { at: number }) {
  return (
    <span aria-live="off">
      <Ago at={at} />
    </span>
  );
}

function Finding({ is_sound, children }: { is_sound: boolean; children: ReactNode }) {
  const Icon = is_sound ? CircleCheck : CircleAlert;
  return (
    <p className={is_sound ? 'text-muted' : 'font-medium text-failed'}>
      <Icon
        aria-hidden
        className={`mr-1 inline size-4 align-text-bottom ${is_sound ? 'text-completed' : ''}`}
      />
      {children}
    </p>
  );
}
