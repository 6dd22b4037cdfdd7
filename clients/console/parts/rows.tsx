import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

const BLOCK = 50;
/** Distance from the window up to which blocks of rows are in the page. */
const MARGIN = '1000px 0px';

interface RowsProps<T> {
  items: readonly T[];
  /** The row of an item; the first has the index 0. */
  row: (item: T, index: number) => ComponentChildren;
}

/**
 * The bodies of a table that may have thousands of rows. Only blocks of rows near the window are in the page, because
 * browsers lay out all rows of a table when a cell changes. An empty row keeps the height of each other block.
 */
export function Rows<T>({ items, row }: RowsProps<T>) {
  const firsts = Array.from({ length: Math.ceil(items.length / BLOCK) }, (_, block) => block * BLOCK);
  return (
    <>
      {firsts.map((first) => (
        <Block key={first} first={first} items={items.slice(first, first + BLOCK)} row={row} />
      ))}
    </>
  );
}

function Block<T>({ first, items, row }: RowsProps<T> & { first: number }) {
  const body = useRef<HTMLTableSectionElement>(null);
  /** Height of a row in pixels while the block is far; null for a block that is in the page. */
  const [far, setFar] = useState<number | null>(null);
  const length = useRef(items.length);
  length.current = items.length;
  useEffect(() => {
    const { current: element } = body;
    if (element === null) return;
    const observer = new IntersectionObserver(
      ([entry]) => {
        // A block with the focus stays, because removing the focused element loses the focus.
        const isNear =
          entry === undefined || entry.isIntersecting || element.contains(document.activeElement);
        setFar(isNear ? null : entry.boundingClientRect.height / length.current);
      },
      { rootMargin: MARGIN },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <tbody ref={body}>
      {far === null ? (
        items.map((item, index) => row(item, first + index))
      ) : (
        <tr style={{ height: `${far * items.length}px` }} />
      )}
    </tbody>
  );
}
