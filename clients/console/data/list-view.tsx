import type { ComponentChildren } from 'preact';
import { useList } from '../app/list.js';
import { go, linkTo, route } from '../app/router.js';
import { Empty } from '../parts/empty.js';
import { Notice } from '../parts/notice.js';
import { type Columns, LoadOlder, RecordsTable } from '../parts/records-table.js';
import { includesText } from '../parts/search.js';
import '../style/data.css';
import { Drop } from './drop.js';
import type { Report } from './upload.js';

/** Records that a search reads at most. */
const SEARCHED = 1_000;

interface Shown {
  id: string;
  name: string;
  description: string;
  created_at: string;
}

interface ListViewProps<T extends Shown> {
  title: string;
  /** First part of the path. */
  page: string;
  list: () => AsyncIterable<T>;
  columns: Columns<T>;
  drop: {
    label: string;
    hint: string;
    send: (files: readonly File[], report: Report, signal: AbortSignal) => Promise<unknown>;
  };
  empty: ComponentChildren;
}

/** A list with a search and a place for uploads. */
export function ListView<T extends Shown>({
  title,
  page,
  list: open,
  columns,
  drop,
  empty,
}: ListViewProps<T>) {
  const text = route.value.query.get('text') ?? '';
  const { list, more } = useList(open, [page], text === '' ? undefined : SEARCHED);
  const shown =
    list.value.value?.items.filter((record) =>
      includesText([record.id, record.name, record.description], text),
    ) ?? null;
  const send: Parameters<typeof Drop>[0]['send'] = async (...given) => {
    await drop.send(...given);
    await list.reload();
  };
  return (
    <>
      <h1>{title}</h1>
      <Drop {...drop} send={send} />
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <input
          type="search"
          aria-label="Search in names, ids and descriptions"
          placeholder="Search  /"
          value={text}
          onInput={({ currentTarget: { value } }) => go(linkTo([page], { text: value }), { replace: true })}
        />
      </form>
      {list.fault.value && <Notice fault={list.fault.value} />}
      {shown?.length === 0 && (text === '' ? empty : <Empty title="Nothing has this text." />)}
      {shown !== null && shown.length > 0 && (
        <RecordsTable title={title} page={page} records={shown} columns={columns} />
      )}
      <LoadOlder name="ones" list={list.value.value} more={more} />
    </>
  );
}
