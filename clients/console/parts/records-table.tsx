import type { ComponentChildren } from 'preact';
import { linkTo } from '../app/router.js';
import { ago } from './format.js';
import { TableHead } from './table-head.js';

interface Shown {
  id: string;
  name: string;
  created_at: string;
}

/** Columns between the name of a record and its age. */
export type Columns<T> = readonly (readonly [name: string, cell: (record: T) => ComponentChildren])[];

interface RecordsTableProps<T extends Shown> {
  title: string;
  /** First part of the path of a record's page. */
  page: string;
  records: readonly T[];
  columns: Columns<T>;
}

/** Records with links to their pages. */
export function RecordsTable<T extends Shown>({ title, page, records, columns }: RecordsTableProps<T>) {
  return (
    <section class="card scroll" aria-label={title}>
      <table class="runs">
        <TableHead names={['Name', ...columns.map(([name]) => name), 'Created']} />
        <tbody>
          {records.map((record) => (
            <tr key={record.id}>
              <th scope="row">
                <a class="name" href={linkTo([page, record.id])}>
                  {record.name}
                </a>
              </th>
              {columns.map(([name, cell]) => (
                <td key={name}>{cell(record)}</td>
              ))}
              <td class="muted">{ago(record.created_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface LoadOlderProps {
  /** Noun for the loaded records. */
  name: string;
  list: { hasMore: boolean } | null | undefined;
  more: () => Promise<void>;
}

/** A button for the rest of a list. */
export function LoadOlder({ name, list, more }: LoadOlderProps) {
  if (!list?.hasMore) return null;
  return (
    <button type="button" onClick={() => void more()}>
      Load older {name}
    </button>
  );
}
