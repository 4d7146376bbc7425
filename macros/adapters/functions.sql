{#- A SQL function in Spark 4's own words. dbt's volatilities are two in Spark: what is stable within a query counts as
    deterministic there. -#}
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

{#- A query stands in brackets, an expression as it is. -#}
{% macro zorder_function_body(code) %}
  {%- set text = code.strip().rstrip(';') -%}
  {%- set comments = '(?s)(\\s|--[^\\n]*(\\n|$)|/\\*.*?\\*/)*' -%}
  {#- the line break ends a comment that the query may end in -#}
  {{ '(' ~ text ~ '\n)' if modules.re.match(comments ~ '(select|with)\\b', text, modules.re.IGNORECASE) else text }}
{% endmacro %}
