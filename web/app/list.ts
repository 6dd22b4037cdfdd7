import { useMemo } from 'preact/hooks';
import { collect } from '../../client/index.js';
import { type Loaded, useLoaded } from './loaded.js';

const PAGE = 50;

export interface List<T> {
  items: readonly T[];
  hasMore: boolean;
}

/**
 * Reads the beginning of a list, newest first, and more of it on demand.
 * @param deps of `open`: with others it begins anew
 * @param first number of entries that are read at first
 */
export function useList<T>(
  open: () => AsyncIterable<T>,
  deps: readonly unknown[],
  first = PAGE,
): { list: Loaded<List<T>>; more: () => Promise<void> } {
  const all = [...deps, first];
  const wanted = useMemo(() => ({ entries: first }), all);
  const list = useLoaded(async () => {
    const found = await collect(open(), wanted.entries + 1);
    return { items: found.slice(0, wanted.entries), hasMore: found.length > wanted.entries };
  }, all);
  const more = () => {
    wanted.entries += PAGE;
    return list.reload();
  };
  return { list, more };
}
