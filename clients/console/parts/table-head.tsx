import { useEffect, useRef } from 'preact/hooks';

/**
 * The head of a table: a column for each name. In a narrow window the rows become blocks, so that no cell is out of
 * sight. Each cell then has the name of its column.
 */
export function TableHead({ names }: { names: readonly string[] }) {
  const head = useRef<HTMLTableSectionElement>(null);
  useEffect(() => {
    const style = head.current?.closest('table')?.style;
    for (const [index, name] of names.entries())
      style?.setProperty(`--column-${index + 1}`, JSON.stringify(name));
  }, [names.join()]);
  return (
    <thead ref={head} class="stacks">
      <tr>
        {names.map((name) => (
          <th key={name} scope="col">
            {name}
          </th>
        ))}
      </tr>
    </thead>
  );
}
