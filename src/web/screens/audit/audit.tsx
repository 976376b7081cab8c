/** The audit log, for root: newest records first, live, with export and verification. */
import { useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Download } from 'lucide-react';
import { errorMessage } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import { Button } from '../../ui/button.tsx';
import { RootRequired, Screen } from '../../ui/screen.tsx';
import { Empty, Failed, Skeleton, Stale } from '../../ui/states.tsx';
import { showToast } from '../../ui/toast.tsx';
import { AuditFilter } from './audit-filter.tsx';
import { AuditList } from './audit-list.tsx';
import { exportAudit } from './export.ts';
import type { AuditSearch } from './records.ts';
import { useAudit } from './use-audit.ts';
import { useVerify } from './verify.tsx';

export function Audit() {
  const root = useSession()?.user.role === 'root';
  return root ? <Log /> : <RootRequired />;
}

function Log() {
  const search = useSearch({ from: '/app/audit' });
  const navigate = useNavigate({ from: '/audit' });
  const { read, records, live } = useAudit(search);
  const save = useMutation({
    mutationFn: () => exportAudit(search),
    onError: (error) => showToast('Export failed', errorMessage(error)),
  });
  const verify = useVerify();
  const filter = (change: AuditSearch) =>
    void navigate({ search: (before) => ({ ...before, ...change }), replace: true });
  const filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <Screen
      title="Audit"
      className="flex flex-col overflow-hidden"
      heading={
        <>
          Audit <span className="font-normal text-muted text-sm">{live && records && 'live'}</span>
        </>
      }
      actions={
        <>
          {verify.button}
          <Button icon={<Download aria-hidden />} busy={save.isPending} onClick={() => save.mutate()}>
            Export NDJSON
          </Button>
        </>
      }
      toolbar={
        <>
          <AuditFilter search={search} onChange={filter} />
          {verify.result}
        </>
      }
    >
      {records === undefined &&
        (read.error ? (
          <Failed error={read.error} retry={() => void read.refetch()} />
        ) : (
          <Skeleton rows={12} />
        ))}
      {records && read.error && (
        <Stale
          since={read.dataUpdatedAt}
          retry={() => void (read.isFetchNextPageError ? read.fetchNextPage() : read.refetch())}
        />
      )}
      {records?.length === 0 && (
        <Empty
          title={
            filtered
              ? 'No records match this filter.'
              : 'No records yet. Actions by users and agents are recorded here.'
          }
        >
          {filtered && (
            <Button onClick={() => void navigate({ search: {}, replace: true })}>Clear filter</Button>
          )}
        </Empty>
      )}
      {records && records.length > 0 && (
        <AuditList
          records={records}
          more={read.hasNextPage && !read.isFetchNextPageError}
          busy={read.isFetchingNextPage}
          onMore={() => void read.fetchNextPage()}
          onFilter={filter}
        />
      )}
    </Screen>
  );
}
