import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { projectRoot } from '../../platform/process/root.js';

/** The parts of a JSON schema that openapi.yaml uses for the job document. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  enum?: unknown[];
  default?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  allOf?: Schema[];
  items?: Schema | false;
  prefixItems?: Schema[];
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  exclusiveMaximum?: number;
}

type Schemas = Record<string, Schema>;

/** A schema with its references and `allOf` parts merged; the innermost value wins. */
function resolve(schema: Schema, schemas: Schemas): Schema {
  const name = schema.$ref?.split('/').at(-1);
  const parts = [...(name ? [schemas[name] ?? {}] : []), ...(schema.allOf ?? [])];
  return Object.assign({}, ...parts.map((part) => resolve(part, schemas)), schema) as Schema;
}

const code = (value: unknown) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

const number = (value: number) => (Number.isInteger(value) ? value.toLocaleString('en') : String(value));

/** Allowed numbers as text that follows a type: `, 1 to 8,192`, or bounds if one of them is exclusive or absent. */
function rangeText({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${number(minimum)} to ${number(maximum)}`;
  const bounds = [
    ['≥', minimum],
    ['>', exclusiveMinimum],
    ['≤', maximum],
    ['<', exclusiveMaximum],
  ] as const;
  const given = bounds.flatMap(([sign, value]) => (value === undefined ? [] : [`${sign} ${number(value)}`]));
  return given.length === 0 ? '' : ` ${given.join(', ')}`;
}

function typeText(schema: Schema): string {
  if (schema.enum) return schema.enum.map(code).join(', ');
  const base = Array.isArray(schema.type) ? schema.type.join(' or ') : (schema.type ?? 'any');
  return base + rangeText(schema);
}

const oneLine = (text = '') => text.trim().replaceAll(/\s+/g, ' ').replaceAll('|', '\\|');

/** The beginning of a description, up to its first colon or full stop; the section of the object has the rest. */
const summary = (text = '') => oneLine(text).replace(/(?:: |\. (?=[A-Z`])).*/, '.');

/** A paragraph in lines of at most 100 characters. */
const paragraph = (text = '') =>
  oneLine(text)
    .replaceAll(/(.{1,100})(?: |$)/g, '$1\n')
    .trimEnd();

/** One section per object of the document: its fields in a table, then its inner objects. */
function sections(path: string[], schema: Schema, schemas: Schemas): string[] {
  const fields = Object.entries(schema.properties ?? {}).map(([name, inner]) => {
    return { name, schema: resolve(inner, schemas), required: schema.required?.includes(name) ?? false };
  });
  const rows = fields.map(({ name, schema: field, required }) => {
    const fallback = required ? '**required**' : field.default === undefined ? '' : code(field.default);
    const link = `(#${anchor([...path, name])})`;
    const type = field.properties
      ? `[object]${link}${field.type?.includes('string') ? ' or string' : ''}`
      : listed(field, schemas)
        ? `[list of objects]${link}`
        : typeText(field);
    const meaning = type.includes(link) ? summary(field.description) : oneLine(field.description);
    return `| \`${name}\` | ${type} | ${fallback} | ${meaning} |`;
  });
  const table = ['| field | type | default | meaning |', '|---|---|---|---|', ...rows].join('\n');
  const heading = path.length === 0 ? '### The document' : `### \`${path.join('.')}\``;
  const inner = fields.flatMap(({ name, schema: field }) => {
    if (field.properties) return sections([...path, name], field, schemas);
    const item = listed(field, schemas);
    return item ? sections([...path, `${name}[]`], item, schemas) : [];
  });
  return [`${heading}\n\n${paragraph(schema.description)}\n\n${table}`, ...inner];
}

/** The objects of a list, or null if it is not a list of objects. */
function listed({ items }: Schema, schemas: Schemas): Schema | null {
  const item = items ? resolve(items, schemas) : null;
  return item?.properties ? item : null;
}

/** GitHub's anchor of a heading that is one code span. */
const anchor = (path: string[]) => path.join('').replaceAll('[]', '');

/** The job document's fields as Markdown, read from `openapi.yaml`. */
export function renderJobSpecTables(): string {
  const document = parse(readFileSync(join(projectRoot(), 'openapi.yaml'), 'utf8')) as {
    components: { schemas: Schemas };
  };
  const { schemas } = document.components;
  return sections([], resolve({ $ref: '#/components/schemas/JobSpec' }, schemas), schemas).join('\n\n');
}
