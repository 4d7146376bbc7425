{#- Return Spark 4's statement for a SQL function. Spark has two volatilities, and counts a function that is stable within
    a query as deterministic. -#}
{% macro spark_zorder__scalar_function_sql(target_relation) %}
  CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
  RETURNS {{ model.returns.data_type }}
  {{ scalar_function_volatility_sql() }}
  RETURN {{ zorder_function_body(model.compiled_code) }}
{% endmacro %}

{% macro spark_zorder__formatted_scalar_function_args_sql() %}
  {%- for arg in model.arguments -%}
    {{ arg.name }} {{ arg.data_type }}
    {%- if arg.get('default_value') is not none and arg.get('default_value') is defined %} DEFAULT {{ arg.default_value }}{% endif %}
    {{- ', ' if not loop.last }}
  {%- endfor -%}
{% endmacro %}

{% macro spark_zorder__scalar_function_volatility_sql() %}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility in ['deterministic', 'stable'] -%}
    DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
    NOT DETERMINISTIC
  {%- elif volatility != none -%}
    {% do unsupported_volatility_warning(volatility) %}
  {%- endif -%}
{% endmacro %}

{#- Return a query in parentheses, and an expression unchanged. -#}
{% macro zorder_function_body(code) %}
  {%- set text = code.strip().rstrip(';') -%}
  {%- set comments = '(?s)(\\s|--[^\\n]*(\\n|$)|/\\*.*?\\*/)*' -%}
  {#- The line break ends a comment at the end of the query. -#}
  {{ '(' ~ text ~ '\n)' if modules.re.match(comments ~ '(select|with)\\b', text, modules.re.IGNORECASE) else text }}
{% endmacro %}
