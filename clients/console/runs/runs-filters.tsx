import { CompleteInput } from '../parts/complete-input.js';
import { words } from '../parts/format.js';
import { Menu } from '../parts/menu.js';
import { COLUMNS } from './columns.js';
import { type Filters, STATES, TIMES } from './filters.js';

interface RunsFiltersProps {
  filters: Filters;
  onChange: (changed: Partial<Filters>) => void;
  columns: readonly string[];
  onColumns: (columns: readonly string[]) => void;
}

const TIME_LABELS: Readonly<Record<Filters['since'], string>> = {
  ever: 'any time',
  day: 'last day',
  week: 'last week',
  month: 'last 30 days',
};

export function RunsFilters({ filters, onChange, columns, onColumns }: RunsFiltersProps) {
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <input
        type="search"
        aria-label="Search in names, ids and labels"
        placeholder="Search  /"
        value={filters.text}
        onInput={(event) => onChange({ text: event.currentTarget.value })}
      />
      <select
        aria-label="State"
        value={filters.state}
        onChange={(event) => onChange({ state: event.currentTarget.value as Filters['state'] })}
      >
        {Object.keys(STATES).map((state) => (
          <option key={state} value={state}>
            {state === 'all' ? 'all states' : state}
          </option>
        ))}
      </select>
      <select
        aria-label="Created"
        value={filters.since}
        onChange={(event) => onChange({ since: event.currentTarget.value as Filters['since'] })}
      >
        {Object.keys(TIMES).map((since) => (
          <option key={since} value={since}>
            {TIME_LABELS[since as Filters['since']]}
          </option>
        ))}
      </select>
      <CompleteInput
        type="text"
        aria-label="Label"
        placeholder="label=value"
        value={filters.label}
        onComplete={(label) => onChange({ label })}
      />
      <Menu class="columns-menu" label="Columns">
        {COLUMNS.map(({ name, label }) => (
          <label key={name}>
            <input
              type="checkbox"
              checked={columns.includes(name)}
              onChange={(event) =>
                onColumns(
                  event.currentTarget.checked
                    ? [...columns, name]
                    : columns.filter((other) => other !== name),
                )
              }
            />
            {words(label)}
          </label>
        ))}
      </Menu>
    </form>
  );
}
