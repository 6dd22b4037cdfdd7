// Types of the Python client: each schema of openapi.yaml is a TypedDict or an alias of the same name.
import { docstring, isName, pascal } from './text.mjs';

const PRIMITIVES = { string: 'str', integer: 'int', number: 'float', boolean: 'bool', null: 'None' };

/** Writes Python types of schemas; `schemas` are those of components. */
export class Types {
  /** Text of each class, by name. */
  classes = new Map();
  /** Expression and referenced aliases of each alias, by name. */
  aliases = new Map();

  constructor(schemas) {
    this.schemas = schemas;
    for (const [name, schema] of Object.entries(schemas)) this.declare(name, schema);
  }

  declare(name, schema) {
    const object = this.merged(schema);
    if (isRecord(object)) this.addClass(name, object);
    else this.aliases.set(name, this.expression(schema, name));
  }

  /** A schema with the properties of all its parts. */
  merged(schema) {
    if (schema.$ref) return this.merged(this.schemas[nameOf(schema.$ref)]);
    if (!schema.allOf) return schema;
    const parts = schema.allOf.map((part) => this.merged(part));
    const properties = Object.assign({}, ...[...parts, schema].map((part) => part.properties));
    const required = [...parts, schema].flatMap((part) => part.required ?? []);
    const open = parts.some((part) => part.additionalProperties === true);
    const additional = open && { additionalProperties: true };
    return { ...parts[0], ...schema, allOf: undefined, properties, required, ...additional };
  }

  addClass(name, { description, properties, required = [] }) {
    if (this.classes.has(name)) throw new Error(`two Python types are called ${name}`);
    this.classes.set(name, '');
    const fields = Object.entries(properties).map(([field, schema]) => ({
      field,
      type: this.expression(schema, `${name}${pascal(field)}`),
      text: isName(field) ? docstring(schema.description, '    ') : '',
      required: required.includes(field),
    }));
    this.classes.set(name, classText(name, description, fields));
  }

  /** Type expression of a schema. @param name of the class if the schema is an object of its own */
  expression(schema, name) {
    if (schema === true || !schema) return 'Any';
    if (schema.$ref) return nameOf(schema.$ref);
    if (schema.allOf) return this.partsExpression(schema, name);
    const choices = schema.oneOf ?? schema.anyOf;
    if (choices && !schema.properties) {
      return union(choices.map((choice, index) => this.expression(choice, `${name}${index + 1}`)));
    }
    if (schema.const !== undefined) return literal([schema.const]);
    if (schema.enum) return literal(schema.enum);
    return union([schema.type ?? 'any'].flat().map((type) => this.typed(type, schema, name)));
  }

  partsExpression(schema, name) {
    const [first] = schema.allOf;
    if (schema.allOf.length === 1 && !schema.properties) return this.expression(first, name);
    const object = this.merged(schema);
    if (!isRecord(object)) return this.expression(first, name);
    this.addClass(name, object);
    return name;
  }

  typed(type, schema, name) {
    if (type === 'array') {
      // Items of different types have no name of their own.
      const { items = true } = schema;
      return `List[${this.expression(items === false ? schema.prefixItems[0] : items, `${name}Item`)}]`;
    }
    if (type !== 'object') return PRIMITIVES[type] ?? 'Any';
    if (isRecord(schema)) {
      this.addClass(name, schema);
      return name;
    }
    const { additionalProperties: values } = schema;
    const value =
      typeof values === 'object' && !schema.properties ? this.expression(values, `${name}Value`) : 'Any';
    return `Dict[str, ${value}]`;
  }
}

const nameOf = (ref) => ref.split('/').pop();

/** True for an object whose fields are all known: a TypedDict. */
const isRecord = ({ type, properties, additionalProperties }) =>
  type === 'object' && properties !== undefined && !additionalProperties;

function union(types) {
  const all = [...new Set(types)];
  const some = all.filter((type) => type !== 'None');
  const one = some.length > 1 ? `Union[${some.join(', ')}]` : (some[0] ?? 'None');
  return some.length < all.length && some.length > 0 ? `Optional[${one}]` : one;
}

function literal(values) {
  const some = values.filter((value) => value !== null);
  const texts = some.map((value) =>
    typeof value === 'boolean' ? pascal(String(value)) : JSON.stringify(value),
  );
  const type = `Literal[${texts.join(', ')}]`;
  return some.length < values.length ? `Optional[${type}]` : type;
}

/** Python 3.9 has no NotRequired: required fields are those of a base class. */
function classText(name, description, fields) {
  const reserved = fields.filter(({ field }) => !isName(field));
  const required = fields.filter((field) => field.required && isName(field.field));
  const optional = fields.filter((field) => !field.required);
  if (reserved.some((field) => !field.required))
    throw new Error(`${name}: an optional field is no Python name`);
  const parts = [];
  let base = 'TypedDict';
  if (reserved.length > 0) {
    base = `_${name}Names`;
    const items = reserved.map(({ field, type }) => `${JSON.stringify(field)}: "${type}"`);
    parts.push(`${base} = TypedDict("${base}", {${items.join(', ')}})`);
  }
  if (required.length > 0 && optional.length > 0) {
    parts.push(`class _${name}Required(${base}):\n${body(required)}`);
    base = `_${name}Required`;
  }
  const total = optional.length > 0 ? ', total=False' : '';
  const doc = docstring(description, '    ');
  parts.push(`class ${name}(${base}${total}):\n${doc}${body(optional.length > 0 ? optional : required)}`);
  return parts.join('\n\n\n');
}

const body = (fields) =>
  fields.map(({ field, type, text }) => `    ${field}: ${type}\n${text}`).join('') || '    pass\n';

/** Aliases after those that they name: Python evaluates them in order. */
function sorted(aliases) {
  const done = new Map();
  const visit = (name, path) => {
    if (done.has(name) || !aliases.has(name)) return;
    if (path.includes(name)) throw new Error(`the alias ${name} contains itself`);
    const expression = aliases.get(name);
    for (const word of expression.replace(/"[^"]*"/g, '').match(/\w+/g)) visit(word, [...path, name]);
    done.set(name, expression);
  };
  for (const name of aliases.keys()) visit(name, []);
  return [...done];
}

/** zerofleet/schemas.py. */
export function schemasModule(types) {
  const classes = [...types.classes.values()].map((text) => `\n${text.trimEnd()}\n`);
  const aliases = sorted(types.aliases).map(([name, expression]) => {
    const text = docstring(types.schemas[name]?.description, '');
    return `${name} = ${expression}\n${text}`;
  });
  return [
    '"""Types of the bodies of requests and answers. Generated from openapi.yaml by `npm run generate`."""\n',
    'from __future__ import annotations\n',
    'from typing import Any, Dict, List, Literal, Optional, TypedDict, Union\n',
    ...classes,
    '',
    ...aliases,
  ].join('\n');
}
