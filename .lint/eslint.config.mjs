// The scripts of the page share one scope (they are joined when the page is built), so what one file defines at its top
// level is a global of the others.
import {readFileSync, readdirSync} from 'node:fs';
import globals from 'globals';

const folder = new URL('../llpbench/board/page/', import.meta.url);
const text = readdirSync(folder)
  .filter((name) => name.endsWith('.js'))
  .map((name) => readFileSync(new URL(name, folder), 'utf8'))
  .join('\n');
const own = [...text.matchAll(/^(?:const|let|(?:async )?function) ([\w$]+)/gm)].map((match) => [match[1], 'writable']);

export default [
  {
    files: ['**/page/*.js'],
    languageOptions: {
      ecmaVersion: 2023,
      sourceType: 'script',
      globals: {...globals.browser, ...Object.fromEntries(own)},
    },
    rules: {
      eqeqeq: 'error',
      'no-const-assign': 'error',
      'no-dupe-keys': 'error',
      'no-implied-eval': 'error',
      'no-shadow-restricted-names': 'error',
      'no-undef': 'error',
      'no-unreachable': 'error',
      'no-unused-expressions': 'error',
      'no-unused-vars': ['error', {vars: 'local'}],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
];
