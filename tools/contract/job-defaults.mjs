// What the schemas of the job document say about its resolution, beside each field in contracts/openapi/schemas/:
// - `default`: the value of an absent field;
// - `x-defaults`: the value by the `type` of the section; a type that is not named does not have the field.
// A schema of the resolved document with `x-filled: true` has every field with a `default`. fillResolved() adds them to
// `required` and to examples. openapi.yaml has no annotations.

const nameOf = (ref) => ref.split('/').at(-1);

/** Properties of all parts of a schema. A later one replaces an earlier one, but for its default. */
function mergedProperties(parts) {
  const properties = {};
  for (const [name, field] of parts.flatMap((part) => Object.entries(part.properties ?? {}))) {
    const value = properties[name]?.default;
    properties[name] = { ...(value !== undefined && { default: value }), ...field };
  }
  return properties;
}

/** The schema that a schema extends or refers to, with the properties and required fields of all its parts. */
function merged({ $ref, ...schema }, schemas) {
  const named = $ref ? [schemas[nameOf($ref)]] : [];
  const parts = [...[...named, ...(schema.allOf ?? [])].map((part) => merged(part, schemas)), schema];
  return {
    ...Object.assign({}, ...parts),
    properties: mergedProperties(parts),
    required: parts.flatMap((part) => part.required ?? []),
    'x-filled': parts.some((part) => part['x-filled'] === true),
  };
}

/** The fields of a schema with a `default`, and its value. */
function defaultsOf(schema, schemas) {
  const fields = Object.entries(schema.properties ?? {});
  return Object.fromEntries(
    fields.flatMap(([name, field]) => {
      const { default: value } = merged(field, schemas);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

/** Adds the fields with a `default` to an example of a resolved document, and to the examples within it. */
function fillExample(schema, example, schemas) {
  const { properties, 'x-filled': isFilled } = merged(schema, schemas);
  if (typeof example !== 'object' || example === null || Array.isArray(example)) return;
  for (const [name, field] of Object.entries(properties))
    if (example[name] !== undefined) fillExample(field, example[name], schemas);
  if (isFilled) Object.assign(example, { ...defaultsOf({ properties }, schemas), ...example });
}

/** Completes the schemas and examples of the resolved document in a bundled contract, and removes the annotations. */
export function fillResolved(contract) {
  const { schemas } = contract.components;
  for (const schema of Object.values(schemas))
    for (const example of schema.examples ?? []) fillExample(schema, example, schemas);
  for (const schema of Object.values(schemas)) {
    if (schema['x-filled'] !== true) continue;
    const { properties, required } = merged(schema, schemas);
    const filled = new Set([...required, ...Object.keys(defaultsOf({ properties }, schemas))]);
    schema.required = Object.keys(properties).filter((name) => filled.has(name));
  }
  for (const schema of Object.values(schemas)) {
    delete schema['x-filled'];
    for (const field of Object.values(schema.properties ?? {})) delete field['x-defaults'];
  }
  return contract;
}

/** The defaults by `type` of a section, or null if none of its fields has any. */
function defaultsByType(schema) {
  const fields = Object.entries(schema.properties).filter(([, field]) => field['x-defaults'] !== undefined);
  if (fields.length === 0) return null;
  return Object.fromEntries(
    schema.properties.type.enum.map((type) => [
      type,
      Object.fromEntries(
        fields.flatMap(([name, { 'x-defaults': values }]) => (type in values ? [[name, values[type]]] : [])),
      ),
    ]),
  );
}

const constant = (doc, name, sections) =>
  `\n/** ${doc} */\nexport const ${name} = {\n${sections
    .map(([section, value]) => `  ${section}: ${JSON.stringify(value)} satisfies ${typeOf(name, section)},\n`)
    .join('')}};\n`;
const typeOf = (name, section) =>
  name === 'DEFAULTS' ? `Partial<Schemas['${section}']>` : `Record<string, Partial<Schemas['${section}']>>`;

/** The names of a schema and of all schemas that it refers to. */
function reachable(name, schemas, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const [, ref] of JSON.stringify(schemas[name]).matchAll(/"\$ref":"([^"]*)"/g))
    reachable(nameOf(ref), schemas, found);
  return found;
}

/** TypeScript of the values of all named schemas of texts, in their order. */
function renderValues(schemas) {
  const lists = Object.entries(schemas).filter(([, { type, enum: values }]) => type === 'string' && values);
  const lines = lists.map(([name, { enum: values }]) => `  ${name}: ${JSON.stringify(values)},\n`);
  return `\n/** Values of the schemas that list theirs. */\nexport const VALUES = {\n${lines.join('')}} as const;\n`;
}

/** TypeScript of the defaults of the job document and of calls, from the bundled contract with its annotations. */
export function renderDefaults({ components: { schemas } }) {
  const named = ['JobSpec', 'Call'].flatMap((name) => [...reachable(name, schemas)]);
  const sections = [...new Set(named)]
    .map((name) => [name, schemas[name]])
    .filter(([, { properties }]) => properties !== undefined);
  const plain = sections
    .map(([name, schema]) => [name, defaultsOf(schema, schemas)])
    .filter(([, defaults]) => Object.keys(defaults).length > 0);
  const byType = sections
    .map(([name, schema]) => [name, defaultsByType(schema)])
    .filter(([, types]) => types !== null);
  return [
    '// Generated from contracts/openapi/ by `npm run generate`; change it there.\n',
    "import type { components } from './openapi.js';\n\ntype Schemas = components['schemas'];\n",
    constant('Values of absent fields, by the schema of their section.', 'DEFAULTS', plain),
    constant(
      'Fields that only some types of a section have, with the values of absent ones: by the schema of the section and its type.',
      'DEFAULTS_BY_TYPE',
      byType,
    ),
    renderValues(schemas),
  ].join('');
}
