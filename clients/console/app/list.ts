import { useEffect, useMemo } from 'preact/hooks';
import { collect } from '../../typescript/index.js';
import { type Loaded, useLoaded } from './loaded.js';

const PAGE = 50;

interface List<T> {
  items: readonly T[];
  hasMore: boolean;
}

/**
 * Reads the beginning of a list, newest first, and more of it on demand.
 * @param deps of `open`: with others it begins anew
 * @param first number of entries that are read at least; a greater one reads more, and what was read stays meanwhile
 * @param options of `useLoaded`
 */
export function useList<T>(
  open: () => AsyncIterable<T>,
  deps: readonly unknown[],
  first = PAGE,
  options?: Parameters<typeof useLoaded>[2],
): { list: Loaded<List<T>>; more: () => Promise<void> } {
  const wanted = useMemo(() => ({ entries: first }), deps);
  const list = useLoaded(
    async () => {
      const { entries } = wanted;
      const found = await collect(open(), entries + 1);
      return { items: found.slice(0, entries), hasMore: found.length > entries };
    },
    deps,
    options,
  );
  useEffect(() => {
    if (first <= wanted.entries) return;
    wanted.entries = first;
    void list.reload();
  }, [first, wanted, list]);
  const more = () => {
    wanted.entries += PAGE;
    return list.reload();
  };
  return { list, more };
}
