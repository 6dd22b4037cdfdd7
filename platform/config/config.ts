/**
 * Configuration: environment variables, all optional, all checked at start. The table `SETTINGS` defines
 * them; the parser, the error for an unknown name and the documentation are derived from it.
 */
import { distance } from 'fastest-levenshtein';
import { ZerofleetError } from '../../contracts/index.js';
import { type Config, SETTINGS } from './settings.js';

export {
  AWS_METADATA_URL,
  type Config,
  CPU_SLOTS,
  GRACE_PERIOD,
  type LogLevel,
  SETTINGS,
  SLURM_ALLOCATION,
} from './settings.js';

/**
 * Reads the configuration.
 * @param env the process environment; only names in `ZEROFLEET_*` are read
 * @throws ZerofleetError `invalid_configuration`, naming every unknown variable and every invalid value
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems = unknownVariables(env);
  const values: Record<string, unknown> = {};
  for (const { key, fallback, parse } of SETTINGS) {
    const variable = variableOf(key);
    // An empty variable counts as unset, as `VAR= command` and most container files intend.
    const text = env[variable] || fallback;
    try {
      values[key] = text === null ? null : parse(text);
    } catch (error) {
      problems.push(`${variable}: ${(error as Error).message}`);
    }
  }
  if (problems.length > 0) {
    const lines = problems.map((line) => `  ${line}`).join('\n');
    throw new ZerofleetError('invalid_configuration', `invalid configuration:\n${lines}`, {
      details: { problems },
    });
  }
  return values as unknown as Config;
}

/** Renders the table as Markdown for the documentation. */
export function renderSettings(): string {
  const rows = SETTINGS.map(({ key, fallback, help, ...rest }) => {
    const fallbackText =
      fallback === null ? `unset: ${'unset' in rest ? rest.unset : ''}` : `\`${fallback}\``;
    return `| \`${variableOf(key)}\` | ${fallbackText} | ${help} |`;
  });
  return ['| variable | default | what it does |', '|---|---|---|', ...rows].join('\n');
}

function variableOf(key: string): string {
  return `ZEROFLEET_${key.toUpperCase()}`;
}

/** Variables of the command line client, which may be set where a program starts. */
const OTHERS = ['ZEROFLEET_URL'];

function unknownVariables(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = SETTINGS.map(({ key }) => variableOf(key));
  return Object.keys(env)
    .filter((name) => name.startsWith('ZEROFLEET_') && !known.includes(name) && !OTHERS.includes(name))
    .sort()
    .map((name) => `${name} is not a setting; the nearest is ${nearest(name, known)}`);
}

function nearest(name: string, known: readonly string[]): string {
  return known.reduce((best, next) => (distance(name, next) < distance(name, best) ? next : best));
}
