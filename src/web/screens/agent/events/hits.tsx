/** Search results of the server, from the whole log. */
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { X } from 'lucide-react';
import { call, type ItemOf } from '../../../api/client.ts';
import { keys } from '../../../api/keys.ts';
import { plainText } from '../../../transcript/ansi.ts';
import { Button, IconButton } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { QueryState } from '../../../ui/states.tsx';
import { Clock } from '../../../ui/time.tsx';

interface Page {
  items: ItemOf<'searchLog'>[];
  next_cursor?: string;
}

export interface HitsProps {
  agent_id: string;
  q: string;
  marked: number | null;
  onClose: () => void;
}

export function Hits({ agent_id, q, marked, onClose }: HitsProps) {
  const read = useInfiniteQuery({
    queryKey: keys.search(agent_id, q),
    queryFn: async ({ pageParam }) =>
      (await call('searchLog', {
        params: { agent_id },
        query: { q, limit: 50, ...(pageParam !== undefined && { cursor: pageParam }) },
      })) as Page,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next_cursor,
    staleTime: 0,
  });
  return (
    <section
      aria-label="Search results"
      className="scroll-y relative max-h-[40%] shrink-0 border-line border-b bg-surface"
    >
      <IconButton
        label="Close search results"
        icon={<X aria-hidden />}
        className="absolute top-1 right-2"
        onClick={onClose}
      />
      <QueryState read={read} rows={2}>
        {({ pages }) => {
          const hits = pages.flatMap(({ items }) => items);
          if (hits.length === 0 && !read.hasNextPage) {
            return (
              <p className="px-3 py-2 text-muted">
                No results. New events become searchable after a few seconds.
              </p>
            );
          }
          return (
            <ol>
              {hits.map(({ seq, ts, stream, snippet }) => (
                <li key={seq}>
                  <Link
                    to="."
                    search={(search) => ({ ...search, type: undefined })}
                    hash={`e${seq}`}
                    replace
                    resetScroll={false}
                    hashScrollIntoView={false}
                    className={cx(
                      'tap flex items-baseline gap-3 px-3 py-1 hover:bg-raised',
                      seq === marked && 'bg-marked',
                    )}
                  >
                    <span className="shrink-0 text-muted">#{seq}</span>
                    <span className="shrink-0 text-muted">
                      <Clock at={ts * 1000} />
                    </span>
                    {stream === 'stderr' && <span className="shrink-0 text-failed">stderr</span>}
                    <span className="min-w-0 flex-1 truncate pr-8 font-mono text-sm">
                      {plainText(snippet.replaceAll('\n', ' '))}
                    </span>
                  </Link>
                </li>
              ))}
            </ol>
          );
        }}
      </QueryState>
      {read.hasNextPage && (
        <div className="p-2">
          <Button busy={read.isFetchingNextPage} onClick={() => void read.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
    </section>
  );
}
